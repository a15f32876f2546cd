// SPDX-License-Identifier: Apache-2.0
#include "comm/bulk/bulk_transport.hpp"

#include <map>
#include <utility>

#include "comm/base/peer_error.hpp"
#include "comm/bulk/device_fabric.hpp"
#include "comm/bulk/transfer_matcher.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

// A bulk transport between threads of one process: the receiver copies from the memory of the sender.
class Local final : public BulkTransport {
 public:
  Local(Rank rank, std::shared_ptr<TransferMatcher> matcher, std::shared_ptr<LocalNetwork> network,
        std::shared_ptr<DeviceFabric> fabric)
      : rank_(rank), matcher_(std::move(matcher)), network_(std::move(network)), fabric_(std::move(fabric)) {}
  ~Local() override {
    if (!pending_sums_.empty() || !running_sums_.empty()) matcher_->abandon_sums(rank_);
    matcher_->close(rank_);
  }

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

  bool can_allreduce(Device device) const override { return fabric_ != nullptr && fabric_->device() == device; }
  Transfer sum(Stream& stream, std::uint64_t tag, FabricSum const& arrays) override {
    GPUPS_ASSERT(can_allreduce(stream.device()));
    Transfer const number = next();
    pending_sums_.emplace(tag, PendingSum{arrays, stream.record(), number});
    matcher_->ready_to_sum(tag);
    return number;
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
    bool const sums = fabric_ != nullptr && progress_sums();
    return result.any || sums;
  }

  bool done(Transfer transfer) override { return matcher_->done(rank_, transfer); }
  std::vector<Transfer> take_done() override { return matcher_->take_done(rank_); }
  void on_arrival(std::function<void()> wake) override { matcher_->on_arrival(rank_, std::move(wake)); }

 private:
  struct PendingSum {
    FabricSum arrays;
    Event written;
    Transfer number;
  };
  struct RunningSum {
    DeviceFabric::IsDone done;
    Transfer number;
  };

  // Starts the sums for which all ranks are ready, in the same order on all ranks. Returns whether any are running.
  bool progress_sums() {
    while (auto const tag = matcher_->next_sum(rank_)) {
      auto const mine = pending_sums_.extract(*tag);
      fabric_->stream().after(mine.mapped().written);
      running_sums_.push_back({fabric_->sum(mine.mapped().arrays), mine.mapped().number});
    }
    if (running_sums_.empty()) return false;
    if (auto const rank = matcher_->abandoned_sums()) {
      fabric_->abort();
      throw PeerError(*rank, fmt::format("rank {} stopped during a sum (the sum cannot be completed): look at the "
                                         "other errors",
                                         number(*rank)));
    }
    fabric_->check();
    std::erase_if(running_sums_, [&](RunningSum const& sum) {
      bool const ended = sum.done();
      if (ended) matcher_->end(rank_, sum.number);
      return ended;
    });
    return true;
  }

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
  std::shared_ptr<DeviceFabric> const fabric_;
  std::map<std::uint64_t, PendingSum> pending_sums_;  // by tag
  std::vector<RunningSum> running_sums_;
  std::uint64_t transfers_ = 0;
};

}  // namespace

std::unique_ptr<BulkTransport> make_local_bulk_transport(Rank rank, std::shared_ptr<TransferMatcher> matcher,
                                                         std::shared_ptr<LocalNetwork> network,
                                                         std::shared_ptr<DeviceFabric> fabric) {
  return std::make_unique<Local>(rank, std::move(matcher), std::move(network), std::move(fabric));
}

std::vector<std::unique_ptr<BulkTransport>> make_local_bulk_transports(int ranks,
                                                                       std::shared_ptr<LocalNetwork> network) {
  auto const matcher = std::make_shared<TransferMatcher>(ranks);
  std::vector<std::unique_ptr<BulkTransport>> ends;
  for (std::uint32_t rank = 0; rank < static_cast<std::uint32_t>(ranks); ++rank) {
    ends.push_back(make_local_bulk_transport(Rank{rank}, matcher, network));
  }
  return ends;
}

}  // namespace gpups::comm
