// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/ucx.hpp"

#include <chrono>
#include <cstring>
#include <deque>
#include <utility>

#include "comm/peer_lost.hpp"
#include "comm/peer_text.hpp"
#include "comm/transport/mailbox.hpp"
#include "comm/waker.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {
namespace {

// A receiver tells what it has taken this often, and whenever a sender wants to know.
constexpr std::size_t kMessagesPerCredit = kQueuedMessagesMax / 4;
constexpr std::chrono::seconds kBenefitOfDoubt(5);
constexpr char const* kWrong = "it sent what cannot be right";

class Ucx final : public Transport {
 public:
  Ucx(std::shared_ptr<UcxCarrier> link, std::shared_ptr<Watch> watch)
      : link_(std::move(link)), watch_(std::move(watch)), peers_(static_cast<std::size_t>(link_->size())) {
    auto const on = [this](UcxKind kind, void (Ucx::*handler)(UcxHeader const&, UcxArrival const&)) {
      link_->handle(kind, [this, handler](UcxHeader const& header, UcxArrival const& arrival) {
        // Only messages may be large; this rank reaches itself without the link.
        bool const is_possible = header.from != rank() && (!arrival.remote || header.kind == UcxKind::kMessage);
        if (is_possible) return (this->*handler)(header, arrival);
        link_->drop(arrival);
        if (header.from != rank()) gone(header.from, PeerLost(header.from, kWrong));
      });
    };
    on(UcxKind::kMessage, &Ucx::message_came);
    on(UcxKind::kCredit, &Ucx::credit_came);
    on(UcxKind::kCreditWanted, &Ucx::credit_wanted);
    on(UcxKind::kEnd, &Ucx::end_came);
    link_->on_wrong(this, [this](Rank peer, std::string const& what) { gone(peer, PeerLost(peer, what)); });
    link_->on_broken([this](Rank peer, std::string const& what) {
      if (broken_.size() >= peers_.size()) return;  // more than one for each would say nothing new
      broken_.push_back({peer, fmt::format("its data connection failed: {}", what), std::chrono::steady_clock::now()});
    });
    if (watch_) {
      watch_->listen({.lost = [this](Rank rank, std::string const& why) { gone(rank, PeerLost(rank, why)); },
                      .left = [this](Rank rank) { gone(rank, PeerLost(rank, "")); }});
    }
  }
  ~Ucx() override {
    wake_.set(nullptr);
    if (!ended_) fail(rank(), "it ended without leaving the group");
    if (watch_) watch_->listen({});
    std::lock_guard lock(link_->mutex());
    *alive_ = false;
    link_->on_broken(nullptr);
    link_->on_wrong(this, nullptr);
    for (auto const kind : {UcxKind::kMessage, UcxKind::kCredit, UcxKind::kCreditWanted, UcxKind::kEnd}) {
      link_->handle(kind, nullptr);
    }
  }

  Rank rank() const override { return link_->rank(); }
  int size() const override { return link_->size(); }

  bool send(Rank to, std::string const& body) override {
    GPUPS_ASSERT(number(to) < peers_.size() && body.size() <= kMessageBytesMax);
    std::lock_guard lock(link_->mutex());
    Peer& peer = peers_[number(to)];
    if (peer.ended) throw *peer.ended;
    bool const full = peer.under_way == kQueuedMessagesMax ||
                      (peer.under_way > 0 && peer.bytes_under_way + body.size() > kMessageBytesMax);
    if (full) {
      if (!std::exchange(peer.refused, true) && to != rank()) link_->send(to, UcxKind::kCreditWanted, 0, 0, {});
      return false;
    }
    ++peer.under_way;
    peer.bytes_under_way += body.size();
    if (to == rank()) {
      peer.inbox.push_back(std::make_shared<Slot>(Slot{body, true}));
      peer.inbox_bytes += body.size();
      ++ready_;
      wake_();
    } else {
      link_->send(to, UcxKind::kMessage, peer.sent++, 0, body);
    }
    return true;
  }

  std::optional<Message> receive() override {
    std::lock_guard lock(link_->mutex());
    if (ready_ == 0) link_->progress();
    judge_broken();
    throw_if_lost();
    if (ready_ == 0) return std::nullopt;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      std::size_t const from = (last_ + 1 + i) % peers_.size();
      Peer& peer = peers_[from];
      if (!is_ready(peer)) continue;
      Message message{Rank{static_cast<std::uint32_t>(from)}, std::move(peer.inbox.front()->body)};
      peer.inbox.pop_front();
      peer.inbox_bytes -= message.body.size();
      ++peer.received;
      --ready_;
      taken(message.from, message.body.size());
      last_ = from;
      return message;
    }
    return std::nullopt;  // what is ready lies behind what is not
  }

  void on_arrival(std::function<void()> wake) override { wake_.set(std::move(wake)); }
  void leave() override { end(rank(), ""); }
  void fail(Rank at_fault, std::string const& why) override { end(at_fault, why); }

 private:
  struct Slot {
    std::string body;
    bool ready;
  };
  struct Peer {
    std::uint64_t sent = 0, received = 0;            // messages; each bears its number
    std::deque<std::shared_ptr<Slot>> inbox;         // in the order in which they were sent; null: has not come
    std::size_t inbox_bytes = 0;                     // of them, as their sender says
    std::size_t under_way = 0, bytes_under_way = 0;  // sent, and not yet taken as far as we know
    bool refused = false;                            // send() has said so since
    std::size_t taken = 0, bytes_taken = 0;          // not yet told
    bool wants_credit = false, telling = false;
    std::optional<PeerLost> ended;
  };

  // Its next message is here.
  static bool is_ready(Peer const& peer) {
    return !peer.inbox.empty() && peer.inbox.front() != nullptr && peer.inbox.front()->ready;
  }

  void message_came(UcxHeader const& header, UcxArrival const& arrival) {
    Peer& peer = peers_[number(header.from)];
    // A network of several ways may let them overtake each other.
    std::uint64_t const place = header.number - peer.received;
    // Twice what a sender may have under way: it does not keep to the rules. Memory is taken on its word.
    bool const too_much = arrival.bytes > kMessageBytesMax || peer.inbox_bytes + arrival.bytes > 2 * kMessageBytesMax ||
                          place >= 2 * kQueuedMessagesMax;
    bool const twice = header.number < peer.received || (place < peer.inbox.size() && peer.inbox[place] != nullptr);
    if (too_much || twice) {
      link_->drop(arrival);
      return gone(header.from,
                  PeerLost(header.from, twice ? "a message of it came twice" : "it sent more than there is room for"));
    }
    auto const slot = std::make_shared<Slot>(Slot{std::string(arrival.bytes, '\0'), !arrival.remote});
    if (place >= peer.inbox.size()) peer.inbox.resize(place + 1);
    peer.inbox[place] = slot;
    peer.inbox_bytes += arrival.bytes;
    if (arrival.remote) {
      link_->fetch(arrival, slot->body.data(), guarded([this, slot] {
                     slot->ready = true;
                     ++ready_;
                     wake_();
                   }));
    } else {
      if (arrival.bytes > 0) std::memcpy(slot->body.data(), arrival.data, arrival.bytes);
      ++ready_;
      wake_();
    }
  }

  void taken(Rank from, std::size_t bytes) {
    Peer& peer = peers_[number(from)];
    if (from == rank()) {
      --peer.under_way;
      peer.bytes_under_way -= bytes;
      if (std::exchange(peer.refused, false)) wake_();
      return;
    }
    ++peer.taken;
    peer.bytes_taken += bytes;
    if (is_worth_telling(peer)) give_credit(from);
  }
  void give_credit(Rank to) {
    Peer& peer = peers_[number(to)];
    // One at a time: whoever does not read them gets no pile of them.
    if (peer.taken == 0 || peer.ended || peer.telling) return;
    peer.wants_credit = false;
    peer.telling = true;
    link_->send(UcxWay::kAtOnce, to, UcxKind::kCredit, std::exchange(peer.taken, 0), std::exchange(peer.bytes_taken, 0),
                nullptr, 0, guarded([this, to] {
                  Peer& told = peers_[number(to)];
                  told.telling = false;
                  if (is_worth_telling(told)) give_credit(to);
                }));
  }
  static bool is_worth_telling(Peer const& peer) {
    return peer.wants_credit || peer.taken >= kMessagesPerCredit || peer.bytes_taken > kMessageBytesMax / 4;
  }
  void credit_wanted(UcxHeader const& header, UcxArrival const&) {
    peers_[number(header.from)].wants_credit = true;
    give_credit(header.from);
  }
  void credit_came(UcxHeader const& header, UcxArrival const&) {
    Peer& peer = peers_[number(header.from)];
    if (header.number > peer.under_way || header.bytes > peer.bytes_under_way) {
      return gone(header.from, PeerLost(header.from, "it has taken more than was sent"));
    }
    peer.under_way -= header.number;
    peer.bytes_under_way -= header.bytes;
    if (std::exchange(peer.refused, false)) wake_();
  }

  void end_came(UcxHeader const& header, UcxArrival const& arrival) {
    std::string const why = peer_text({static_cast<char const*>(arrival.data), arrival.bytes});
    // A regular end is nobody else's.
    if (header.number >= peers_.size() || (why.empty() && header.number != number(header.from))) {
      return gone(header.from, PeerLost(header.from, kWrong));
    }
    gone(header.from, PeerLost(Rank{static_cast<std::uint32_t>(header.number)}, why));
  }

  // An operation's end is called back by the link, which may outlive this object.
  std::function<void()> guarded(std::function<void()> then) {
    return [alive = alive_, then = std::move(then)] {
      if (*alive) then();
    };
  }

  // A rank takes and sends no more; an error replaces a regular end.
  void gone(Rank peer, PeerLost const& how) {
    std::lock_guard lock(link_->mutex());
    auto& ended = peers_[number(peer)].ended;
    if (ended && (how.why().empty() || !ended->why().empty())) return;
    ended.emplace(how);
    if (!how.why().empty()) losses_.emplace_back(peer, how);
    wake_();
  }
  // Most connections fail because their other end is lost, perhaps for another's sake: who knows better has some time
  // to say so.
  void judge_broken() {
    if (broken_.empty() || broken_.front().since + kBenefitOfDoubt > std::chrono::steady_clock::now()) return;
    Broken const broken = std::move(broken_.front());
    broken_.pop_front();
    if (!peers_[number(broken.peer)].ended) gone(broken.peer, PeerLost(broken.peer, broken.why));
  }
  void throw_if_lost() const {
    for (auto const& [teller, how] : losses_) {
      if (!is_ready(peers_[number(teller)])) throw how;
    }
  }

  void end(Rank at_fault, std::string const& why) {
    std::lock_guard lock(link_->mutex());
    if (ended_ && (why.empty() || !ended_->empty())) return;
    ended_ = why;
    for (std::uint32_t to = 0; to < peers_.size(); ++to) {
      if (Rank{to} != rank() && !peers_[to].ended)
        link_->send(Rank{to}, UcxKind::kEnd, number(at_fault), 0, peer_text(why));
    }
    if (watch_) watch_->leave(at_fault, why);
    link_->progress();
  }

  std::shared_ptr<UcxCarrier> const link_;
  std::shared_ptr<Watch> const watch_;
  std::shared_ptr<bool> const alive_ = std::make_shared<bool>(true);
  std::vector<Peer> peers_;
  std::size_t ready_ = 0, last_ = 0;
  struct Broken {
    Rank peer;
    std::string why;
    std::chrono::steady_clock::time_point since;
  };
  std::deque<Broken> broken_;                      // connections, the first to fail first
  std::vector<std::pair<Rank, PeerLost>> losses_;  // who said it, or is it; in the order in which they became known
  std::optional<std::string> ended_;               // this rank has left, and why
  Waker wake_;
};

}  // namespace

std::unique_ptr<Transport> make_ucx_transport(std::shared_ptr<UcxCarrier> link, std::shared_ptr<Watch> watch) {
  return std::make_unique<Ucx>(std::move(link), std::move(watch));
}

}  // namespace gpups::comm
