// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/ucx.hpp"

#include <deque>
#include <map>
#include <utility>

#include "comm/peer_lost.hpp"
#include "comm/transport/mailbox.hpp"
#include "comm/waker.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {
namespace {

// A receiver tells what it has taken this often, and whenever a sender wants to know.
constexpr std::size_t kMessagesPerCredit = kQueuedMessagesMax / 4;

class Ucx final : public Transport {
 public:
  Ucx(std::shared_ptr<UcxLink> link, std::shared_ptr<Watch> watch)
      : link_(std::move(link)), watch_(std::move(watch)), peers_(static_cast<std::size_t>(link_->size())) {
    auto const on = [this](UcxKind kind, void (Ucx::*handler)(UcxHeader const&, UcxArrival const&)) {
      link_->handle(kind, [this, handler](UcxHeader const& header, UcxArrival const& arrival) {
        (this->*handler)(header, arrival);
      });
    };
    on(UcxKind::kMessage, &Ucx::message_came);
    on(UcxKind::kCredit, &Ucx::credit_came);
    on(UcxKind::kCreditWanted, &Ucx::credit_wanted);
    on(UcxKind::kEnd, &Ucx::end_came);
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
      ++ready_;
      wake_();
    } else {
      link_->send(to, UcxKind::kMessage, 0, 0, body);
    }
    return true;
  }

  std::optional<Message> receive() override {
    std::lock_guard lock(link_->mutex());
    if (ready_ == 0) link_->progress();
    throw_if_lost();
    if (ready_ == 0) return std::nullopt;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      std::size_t const from = (last_ + 1 + i) % peers_.size();
      Peer& peer = peers_[from];
      if (peer.inbox.empty() || !peer.inbox.front()->ready) continue;
      Message message{Rank{static_cast<std::uint32_t>(from)}, std::move(peer.inbox.front()->body)};
      peer.inbox.pop_front();
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
    std::deque<std::shared_ptr<Slot>> inbox;         // in the order in which they were sent
    std::size_t under_way = 0, bytes_under_way = 0;  // sent, and not yet taken as far as we know
    bool refused = false;                            // send() has said so since
    std::size_t taken = 0, bytes_taken = 0;          // not yet told
    bool wants_credit = false;
    std::optional<PeerLost> ended;
  };

  void message_came(UcxHeader const& header, UcxArrival const& arrival) {
    Peer& peer = peers_[number(header.from)];
    // Twice what a sender may have under way: it does not keep to the rules.
    bool const too_much = arrival.bytes > kMessageBytesMax || peer.inbox.size() >= 2 * kQueuedMessagesMax;
    if (too_much) {
      link_->drop(arrival);
      return gone(header.from, PeerLost(header.from, "it sent more than there is room for"));
    }
    auto const slot = std::make_shared<Slot>(Slot{std::string(arrival.bytes, '\0'), !arrival.remote});
    peer.inbox.push_back(slot);
    if (arrival.remote) {
      link_->fetch(arrival, slot->body.data(), [this, slot] {
        slot->ready = true;
        ++ready_;
        wake_();
      });
    } else {
      std::memcpy(slot->body.data(), arrival.data, arrival.bytes);
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
    if (peer.wants_credit || peer.taken >= kMessagesPerCredit || peer.bytes_taken > kMessageBytesMax / 4) {
      give_credit(from);
    }
  }
  void give_credit(Rank to) {
    Peer& peer = peers_[number(to)];
    if (peer.taken == 0 || peer.ended) return;
    peer.wants_credit = false;
    link_->send(to, UcxKind::kCredit, std::exchange(peer.taken, 0), std::exchange(peer.bytes_taken, 0), {});
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
    if (arrival.remote || header.number >= peers_.size()) {
      link_->drop(arrival);
      return gone(header.from, PeerLost(header.from, "it sent what cannot be right"));
    }
    gone(header.from, PeerLost(Rank{static_cast<std::uint32_t>(header.number)},
                               std::string(static_cast<char const*>(arrival.data), arrival.bytes)));
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
  void throw_if_lost() const {
    for (auto const& [teller, how] : losses_) {
      auto const& inbox = peers_[number(teller)].inbox;
      if (inbox.empty() || !inbox.front()->ready) throw how;
    }
  }

  void end(Rank at_fault, std::string const& why) {
    std::lock_guard lock(link_->mutex());
    if (ended_ && (why.empty() || !ended_->empty())) return;
    ended_ = why;
    for (std::uint32_t to = 0; to < peers_.size(); ++to) {
      if (Rank{to} != rank() && !peers_[to].ended) link_->send(Rank{to}, UcxKind::kEnd, number(at_fault), 0, why);
    }
    if (watch_) watch_->leave(at_fault, why);
    link_->progress();
  }

  std::shared_ptr<UcxLink> const link_;
  std::shared_ptr<Watch> const watch_;
  std::vector<Peer> peers_;
  std::size_t ready_ = 0, last_ = 0;
  std::vector<std::pair<Rank, PeerLost>> losses_;  // who said it, or is it; in the order in which they became known
  std::optional<std::string> ended_;               // this rank has left, and why
  Waker wake_;
};

}  // namespace

std::unique_ptr<Transport> make_ucx_transport(std::shared_ptr<UcxLink> link, std::shared_ptr<Watch> watch) {
  return std::make_unique<Ucx>(std::move(link), std::move(watch));
}

}  // namespace gpups::comm
