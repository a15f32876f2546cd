// SPDX-License-Identifier: Apache-2.0
#include "comm/bulk/bulk_transport.hpp"

#include <utility>

#include "comm/bulk/transfer_matcher.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

// A bulk transport between threads of one process: the receiver copies from the memory of the sender.
class Local final : public BulkTransport {
 public:
  Local(Rank rank, std::shared_ptr<TransferMatcher> matcher, std::shared_ptr<LocalNetwork> network)
      : rank_(rank), matcher_(std::move(matcher)), network_(std::move(network)) {}
  ~Local() override { matcher_->close(rank_); }

  Transfer send(Stream& stream, Rank to, std::uint64_t tag, void const* data, std::size_t bytes) override {
    auto const offer = std::make_shared<PostedSend>(PostedSend{.from = rank_,
                                                               .to = to,
                                                               .tag = tag,
                                                               .number = next(),
                                                               .ready = stream.record(),
                                                               .data = data,
                                                               .device = stream.device(),
                                                               .bytes = bytes});
    matcher_->offer(offer);
    deliver_later(to, [matcher = matcher_, offer] { matcher->arrive(offer); });
    return offer->number;
  }

  Transfer receive(Stream& stream, Rank from, std::uint64_t tag, std::size_t bytes, Allocate allocate) override {
    Transfer const number = next();
    matcher_->receive(rank_, from, tag, {stream, number, bytes, std::move(allocate)});
    return number;
  }

  bool can_allreduce(Device) const override { return false; }
  Transfer sum(Stream&, std::uint64_t, View<float const>, View<float>) override {
    GPUPS_ASSERT(false && "threads have no device fabric");
    return {};
  }

  bool progress() override {
    if (network_) network_->poll();
    matcher_->check(rank_);
    TransferMatcher::MoveResult const result = matcher_->move(rank_);
    for (auto const& offer : result.done) {
      deliver_later(offer->from, [matcher = matcher_, offer] { matcher->sent(*offer); });
    }
    for (auto const& offer : result.rejected) {
      deliver_later(offer->from, [matcher = matcher_, offer] { matcher->rejected(*offer); });
    }
    matcher_->check(rank_);
    return result.any;
  }

  bool done(Transfer transfer) override { return matcher_->done(rank_, transfer); }
  std::vector<Transfer> take_done() override { return matcher_->take_done(rank_); }
  void on_arrival(std::function<void()> wake) override { matcher_->on_arrival(rank_, std::move(wake)); }

 private:
  Transfer next() { return Transfer{++transfers_}; }

  template <class Arrive>
  void deliver_later(Rank to, Arrive arrive) {
    if (network_) {
      network_->deliver_later(LocalNetwork::Order::kFree, rank_, to, std::move(arrive));
    } else {
      arrive();
    }
  }

  Rank const rank_;
  std::shared_ptr<TransferMatcher> const matcher_;
  std::shared_ptr<LocalNetwork> const network_;
  std::uint64_t transfers_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<BulkTransport>> make_local_bulk_transports(int ranks,
                                                                       std::shared_ptr<LocalNetwork> network) {
  auto const matcher = std::make_shared<TransferMatcher>(ranks);
  std::vector<std::unique_ptr<BulkTransport>> ends;
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(ranks); ++rank) {
    ends.push_back(std::make_unique<Local>(Rank{rank}, matcher, network));
  }
  return ends;
}

}  // namespace gpups::comm
