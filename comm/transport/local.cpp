// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/transport.hpp"

#include <utility>

#include "comm/transport/mailbox.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

using Mailboxes = std::vector<std::unique_ptr<Mailbox>>;

// A transport between threads of one process: senders write into the mailbox of the receiver.
class Local final : public Transport {
 public:
  Local(Rank rank, std::shared_ptr<Mailboxes> mailboxes, std::shared_ptr<LocalNetwork> network)
      : rank_(rank), mailboxes_(std::move(mailboxes)), network_(std::move(network)) {}
  ~Local() override {
    mine().wake.set(nullptr);
    if (!mine().closed()) fail(rank_, "it ended without leaving the group");
  }

  Rank rank() const override { return rank_; }
  int size() const override { return static_cast<int>(mailboxes_->size()); }

  bool send(Rank to, std::string const& body) override {
    GPUPS_ASSERT(number(to) < mailboxes_->size() && body.size() <= kMessageBytesMax);
    if (!mailbox(to).reserve(rank_, body.size())) return false;
    deliver_later(to, [mailboxes = mailboxes_, to, message = TransportMessage{rank_, body}]() mutable {
      (*mailboxes)[number(to)]->deliver(std::move(message));
    });
    return true;
  }

  std::optional<TransportMessage> receive() override {
    if (network_) network_->poll();
    std::optional<Rank> sender_with_credit;
    std::optional<TransportMessage> message = mine().receive(sender_with_credit);
    if (sender_with_credit) mailbox(*sender_with_credit).wake();
    return message;
  }

  void on_arrival(std::function<void()> wake) override { mine().wake.set(std::move(wake)); }

  void leave() override { end(PeerLost(rank_, "")); }
  void fail(Rank at_fault, std::string const& why) override { end(PeerLost(at_fault, why)); }

 private:
  void end(PeerLost const& departure) {
    if (!mine().close(departure)) return;
    for (std::uint32_t to = 0; to < mailboxes_->size(); ++to) {
      if (Rank{to} == rank_) continue;
      if (!departure.why().empty()) {
        deliver_later(Rank{to}, [mailboxes = mailboxes_, to, from = rank_, departure] {
          (*mailboxes)[to]->lost(from, departure);
        });
      } else {
        mailbox(Rank{to}).wake();  // a sender that waits for room must see that this rank has left
      }
    }
  }
  Mailbox& mailbox(Rank rank) { return *(*mailboxes_)[number(rank)]; }
  Mailbox& mine() { return mailbox(rank_); }

  template <class Arrive>
  void deliver_later(Rank to, Arrive arrive) {
    if (network_) {
      network_->deliver_later(LocalNetwork::Order::kFifo, rank_, to, std::move(arrive));
    } else {
      arrive();
    }
  }

  Rank const rank_;
  std::shared_ptr<Mailboxes> const mailboxes_;
  std::shared_ptr<LocalNetwork> const network_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_local_transports(int ranks, std::shared_ptr<LocalNetwork> network) {
  auto mailboxes = std::make_shared<Mailboxes>();
  std::vector<std::unique_ptr<Transport>> ends;
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(ranks); ++rank) {
    mailboxes->push_back(std::make_unique<Mailbox>(ranks));
    ends.push_back(std::make_unique<Local>(Rank{rank}, mailboxes, network));
  }
  return ends;
}

}  // namespace gpups::comm
