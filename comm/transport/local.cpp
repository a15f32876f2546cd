// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/local.hpp"

#include <xxhash.h>

#include <utility>

#include "comm/transport/mailbox.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {
namespace {

using Mailboxes = std::vector<std::unique_ptr<Mailbox>>;

class Local final : public Transport {
 public:
  Local(Rank rank, std::shared_ptr<Mailboxes> boxes, std::shared_ptr<Network> network)
      : rank_(rank), boxes_(std::move(boxes)), network_(std::move(network)) {}
  ~Local() override {
    mine().wake.set(nullptr);
    if (!mine().closed()) fail(rank_, "it ended without leaving the group");
  }

  Rank rank() const override { return rank_; }
  int size() const override { return static_cast<int>(boxes_->size()); }

  bool send(Rank to, std::string const& body) override {
    GPUPS_ASSERT(number(to) < boxes_->size() && body.size() <= kMessageBytesMax);
    if (!box(to).reserve(rank_, body.size())) return false;
    carry(to, body, [boxes = boxes_, to, message = Message{rank_, body}]() mutable {
      (*boxes)[number(to)]->deliver(std::move(message));
    });
    return true;
  }

  std::optional<Message> receive() override {
    if (network_) network_->poll();
    std::optional<Rank> room_for;
    std::optional<Message> message = mine().receive(room_for);
    if (room_for) box(*room_for).wake();
    return message;
  }

  void on_arrival(std::function<void()> wake) override { mine().wake.set(std::move(wake)); }

  void leave() override { end(PeerLost(rank_, "")); }
  void fail(Rank at_fault, std::string const& why) override { end(PeerLost(at_fault, why)); }

 private:
  void end(PeerLost const& how) {
    if (!mine().close(how)) return;
    for (std::uint32_t to = 0; to < boxes_->size(); ++to) {
      if (Rank{to} == rank_) continue;
      if (!how.why().empty()) {
        carry(Rank{to}, how.why(), [boxes = boxes_, to, from = rank_, how] { (*boxes)[to]->lost(from, how); });
      } else {
        box(Rank{to}).wake();  // who waits for room here has to see that there will be none
      }
    }
  }
  Mailbox& box(Rank rank) { return *(*boxes_)[number(rank)]; }
  Mailbox& mine() { return box(rank_); }

  template <class Arrive>
  void carry(Rank to, std::string const& content, Arrive arrive) {
    if (network_) {
      network_->carry(Network::Order::kFifo, rank_, to, XXH3_64bits(content.data(), content.size()), std::move(arrive));
    } else {
      arrive();
    }
  }

  Rank const rank_;
  std::shared_ptr<Mailboxes> const boxes_;
  std::shared_ptr<Network> const network_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_local_transports(int ranks, std::shared_ptr<Network> network) {
  auto boxes = std::make_shared<Mailboxes>();
  std::vector<std::unique_ptr<Transport>> ends;
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(ranks); ++rank) {
    boxes->push_back(std::make_unique<Mailbox>(ranks));
    ends.push_back(std::make_unique<Local>(Rank{rank}, boxes, network));
  }
  return ends;
}

}  // namespace gpups::comm
