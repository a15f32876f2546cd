// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstring>
#include <deque>
#include <utility>

#include "comm/base/peer_error.hpp"
#include "comm/base/wakeup.hpp"
#include "comm/bootstrap/failure_detector.hpp"
#include "comm/transport/mailbox.hpp"
#include "comm/transport/transport.hpp"
#include "comm/ucx/active_messages.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

// A receiver returns credits after so many messages, and whenever a sender requests them.
constexpr std::size_t kMessagesPerCredit = kQueuedMessagesMax / 4;
constexpr std::chrono::seconds kFailureReportGrace(5);
constexpr char const* kWrong = "it sent an invalid message";

// A transport over active messages. Flow control: a sender has at most kQueuedMessagesMax messages in flight to a
// receiver, and the receiver returns credits for those that it has received.
class Ucx final : public Transport {
 public:
  Ucx(std::shared_ptr<ActiveMessages> ucx, std::shared_ptr<FailureDetector> failure_detector)
      : ucx_(std::move(ucx)),
        failure_detector_(std::move(failure_detector)),
        peers_(static_cast<std::size_t>(ucx_->size())) {
    auto const on = [this](AmKind kind, void (Ucx::*handler)(AmHeader const&, AmArrival const&)) {
      ucx_->handle(kind, [this, handler](AmHeader const& header, AmArrival const& arrival) {
        // Only messages may be remote, and this rank sends nothing to itself over the network.
        bool const is_possible = header.from != rank() && (!arrival.remote || header.kind == AmKind::kMessage);
        if (is_possible) return (this->*handler)(header, arrival);
        ucx_->drop(arrival);
        if (header.from != rank()) set_ended(header.from, PeerLost(header.from, kWrong));
      });
    };
    on(AmKind::kMessage, &Ucx::on_message);
    on(AmKind::kCredit, &Ucx::on_credit);
    on(AmKind::kCreditRequest, &Ucx::on_credit_request);
    on(AmKind::kEnd, &Ucx::on_end);
    ucx_->on_peer_error(this, [this](Rank peer, std::string const& what) { set_ended(peer, PeerLost(peer, what)); });
    ucx_->on_broken([this](Rank peer, std::string const& what) {
      if (broken_connections_.size() >= peers_.size()) return;  // one for each rank is enough
      broken_connections_.push_back(
          {peer, fmt::format("its data connection failed: {}", what), std::chrono::steady_clock::now()});
    });
    if (failure_detector_) {
      failure_detector_->subscribe(
          {.lost = [this](Rank rank, std::string const& why) { set_ended(rank, PeerLost(rank, why)); },
           .left = [this](Rank rank) { set_ended(rank, PeerLost(rank, "")); }});
    }
  }
  ~Ucx() override {
    wake_.set(nullptr);
    if (!ended_) fail(rank(), "it ended without leaving the group");
    if (failure_detector_) failure_detector_->subscribe({});
    std::lock_guard lock(ucx_->mutex());
    *alive_ = false;
    ucx_->on_broken(nullptr);
    ucx_->on_peer_error(this, nullptr);
    for (auto const kind : {AmKind::kMessage, AmKind::kCredit, AmKind::kCreditRequest, AmKind::kEnd}) {
      ucx_->handle(kind, nullptr);
    }
  }

  Rank rank() const override { return ucx_->rank(); }
  int size() const override { return ucx_->size(); }

  bool send(Rank to, std::string const& body) override {
    GPUPS_ASSERT(number(to) < peers_.size() && body.size() <= kMessageBytesMax);
    std::lock_guard lock(ucx_->mutex());
    Peer& peer = peers_[number(to)];
    if (peer.ended) throw *peer.ended;
    bool const full = peer.in_flight == kQueuedMessagesMax ||
                      (peer.in_flight > 0 && peer.bytes_in_flight + body.size() > kMessageBytesMax);
    if (full) {
      if (!std::exchange(peer.rejected, true) && to != rank()) ucx_->send(to, AmKind::kCreditRequest, 0, 0, {});
      return false;
    }
    ++peer.in_flight;
    peer.bytes_in_flight += body.size();
    if (to == rank()) {
      peer.inbox.push_back(std::make_shared<QueuedMessage>(QueuedMessage{body, true}));
      peer.inbox_bytes += body.size();
      ++ready_;
      wake_();
    } else {
      ucx_->send(to, AmKind::kMessage, peer.sent++, 0, body);
    }
    return true;
  }

  std::optional<TransportMessage> receive() override {
    std::lock_guard lock(ucx_->mutex());
    if (ready_ == 0) ucx_->progress();
    expire_broken();
    throw_if_lost();
    if (ready_ == 0) return std::nullopt;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      std::size_t const from = (last_ + 1 + i) % peers_.size();
      Peer& peer = peers_[from];
      if (!is_ready(peer)) continue;
      TransportMessage message{Rank{static_cast<std::uint32_t>(from)}, std::move(peer.inbox.front()->body)};
      peer.inbox.pop_front();
      peer.inbox_bytes -= message.body.size();
      ++peer.received;
      --ready_;
      consumed(message.from, message.body.size());
      last_ = from;
      return message;
    }
    return std::nullopt;  // ready messages come after one that has not arrived
  }

  void on_arrival(std::function<void()> wake) override { wake_.set(std::move(wake)); }
  void leave() override { end(rank(), ""); }
  void fail(Rank at_fault, std::string const& why) override { end(at_fault, why); }

 private:
  struct QueuedMessage {
    std::string body;
    bool ready;
  };
  struct Peer {
    std::uint64_t sent = 0, received = 0;              // messages; the sender numbers them
    std::deque<std::shared_ptr<QueuedMessage>> inbox;  // in the order of sending; null: has not arrived
    std::size_t inbox_bytes = 0;                       // of the inbox, from the headers
    std::size_t in_flight = 0, bytes_in_flight = 0;    // sent, and no credit returned
    bool rejected = false;                             // send() has returned false since the last credit
    std::size_t consumed = 0, bytes_consumed = 0;      // received, and no credit returned
    bool credit_requested = false, credit_in_flight = false;
    std::optional<PeerLost> ended;
  };

  // Returns whether the next message of the peer has arrived.
  static bool is_ready(Peer const& peer) {
    return !peer.inbox.empty() && peer.inbox.front() != nullptr && peer.inbox.front()->ready;
  }

  void on_message(AmHeader const& header, AmArrival const& arrival) {
    Peer& peer = peers_[number(header.from)];
    // Messages may arrive out of order on a network with several paths.
    std::uint64_t const position = header.number - peer.received;
    // A sender that exceeds its credits twofold violates the protocol. The bound limits the memory that is allocated
    // from its headers.
    bool const is_over_limit = arrival.bytes > kMessageBytesMax ||
                               peer.inbox_bytes + arrival.bytes > 2 * kMessageBytesMax ||
                               position >= 2 * kQueuedMessagesMax;
    bool const is_duplicate =
        header.number < peer.received || (position < peer.inbox.size() && peer.inbox[position] != nullptr);
    if (is_over_limit || is_duplicate) {
      ucx_->drop(arrival);
      return set_ended(header.from, PeerLost(header.from, is_duplicate ? "it sent a message twice"
                                                                       : "it sent more than its credits allow"));
    }
    auto const queued =
        std::make_shared<QueuedMessage>(QueuedMessage{std::string(arrival.bytes, '\0'), !arrival.remote});
    if (position >= peer.inbox.size()) peer.inbox.resize(position + 1);
    peer.inbox[position] = queued;
    peer.inbox_bytes += arrival.bytes;
    if (arrival.remote) {
      ucx_->fetch(arrival, queued->body.data(), guarded([this, queued] {
                    queued->ready = true;
                    ++ready_;
                    wake_();
                  }));
    } else {
      if (arrival.bytes > 0) std::memcpy(queued->body.data(), arrival.data, arrival.bytes);
      ++ready_;
      wake_();
    }
  }

  void consumed(Rank from, std::size_t bytes) {
    Peer& peer = peers_[number(from)];
    if (from == rank()) {
      --peer.in_flight;
      peer.bytes_in_flight -= bytes;
      if (std::exchange(peer.rejected, false)) wake_();
      return;
    }
    ++peer.consumed;
    peer.bytes_consumed += bytes;
    if (should_return_credit(peer)) return_credit(from);
  }
  void return_credit(Rank to) {
    Peer& peer = peers_[number(to)];
    // One credit message at a time, so that they do not pile up at a peer that does not read them.
    if (peer.consumed == 0 || peer.ended || peer.credit_in_flight) return;
    peer.credit_requested = false;
    peer.credit_in_flight = true;
    ucx_->send(AmProtocol::kEager, to, AmKind::kCredit, std::exchange(peer.consumed, 0),
               std::exchange(peer.bytes_consumed, 0), nullptr, 0, guarded([this, to] {
                 Peer& peer_state = peers_[number(to)];
                 peer_state.credit_in_flight = false;
                 if (should_return_credit(peer_state)) return_credit(to);
               }));
  }
  static bool should_return_credit(Peer const& peer) {
    return peer.credit_requested || peer.consumed >= kMessagesPerCredit || peer.bytes_consumed > kMessageBytesMax / 4;
  }
  void on_credit_request(AmHeader const& header, AmArrival const&) {
    peers_[number(header.from)].credit_requested = true;
    return_credit(header.from);
  }
  void on_credit(AmHeader const& header, AmArrival const&) {
    Peer& peer = peers_[number(header.from)];
    if (header.number > peer.in_flight || header.bytes > peer.bytes_in_flight) {
      return set_ended(header.from, PeerLost(header.from, "it returned credits for more than was sent"));
    }
    peer.in_flight -= header.number;
    peer.bytes_in_flight -= header.bytes;
    if (std::exchange(peer.rejected, false)) wake_();
  }

  void on_end(AmHeader const& header, AmArrival const& arrival) {
    std::string const why = peer_text({static_cast<char const*>(arrival.data), arrival.bytes});
    // A rank can leave in order only for itself.
    if (header.number >= peers_.size() || (why.empty() && header.number != number(header.from))) {
      return set_ended(header.from, PeerLost(header.from, kWrong));
    }
    set_ended(header.from, PeerLost(Rank{static_cast<std::uint32_t>(header.number)}, why));
  }

  // The worker calls back when an operation ends, perhaps after this object is destroyed.
  std::function<void()> guarded(std::function<void()> then) {
    return [alive = alive_, then = std::move(then)] {
      if (*alive) then();
    };
  }

  // Marks a rank as ended. An error replaces an orderly leave.
  void set_ended(Rank peer, PeerLost const& departure) {
    std::lock_guard lock(ucx_->mutex());
    auto& ended = peers_[number(peer)].ended;
    if (ended && (departure.why().empty() || !ended->why().empty())) return;
    ended.emplace(departure);
    if (!departure.why().empty()) failures_.emplace_back(peer, departure);
    wake_();
  }
  // Reports broken connections after a grace period. Most connections break because their peer is lost, perhaps because
  // of another rank; the failure detector or the peer usually reports the reason first.
  void expire_broken() {
    if (broken_connections_.empty() ||
        broken_connections_.front().since + kFailureReportGrace > std::chrono::steady_clock::now())
      return;
    BrokenConnection const broken = std::move(broken_connections_.front());
    broken_connections_.pop_front();
    if (!peers_[number(broken.peer)].ended) set_ended(broken.peer, PeerLost(broken.peer, broken.why));
  }
  void throw_if_lost() const {
    for (auto const& [reporter, departure] : failures_) {
      if (!is_ready(peers_[number(reporter)])) throw departure;
    }
  }

  void end(Rank at_fault, std::string const& why) {
    std::lock_guard lock(ucx_->mutex());
    if (ended_ && (why.empty() || !ended_->empty())) return;
    ended_ = why;
    for (std::uint32_t to = 0; to < peers_.size(); ++to) {
      if (Rank{to} != rank() && !peers_[to].ended)
        ucx_->send(Rank{to}, AmKind::kEnd, number(at_fault), 0, peer_text(why));
    }
    if (failure_detector_) failure_detector_->leave(at_fault, why);
    ucx_->progress();
  }

  std::shared_ptr<ActiveMessages> const ucx_;
  std::shared_ptr<FailureDetector> const failure_detector_;
  std::shared_ptr<bool> const alive_ = std::make_shared<bool>(true);
  std::vector<Peer> peers_;
  std::size_t ready_ = 0, last_ = 0;
  struct BrokenConnection {
    Rank peer;
    std::string why;
    std::chrono::steady_clock::time_point since;
  };
  std::deque<BrokenConnection> broken_connections_;  // ascending by time
  std::vector<std::pair<Rank, PeerLost>>
      failures_;                      // the reporter, or the lost rank itself; in the order of the reports
  std::optional<std::string> ended_;  // why this rank has left; empty text: in order
  Callback wake_;
};

}  // namespace

std::unique_ptr<Transport> make_ucx_transport(std::shared_ptr<ActiveMessages> ucx,
                                              std::shared_ptr<FailureDetector> failure_detector) {
  return std::make_unique<Ucx>(std::move(ucx), std::move(failure_detector));
}

}  // namespace gpups::comm
