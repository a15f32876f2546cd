// SPDX-License-Identifier: Apache-2.0
// Routes of bulk data between devices, with host memory in place of devices: a device fabric within the process, and a
// link that does not reach device memory, so that all data is staged.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "comm/bulk/bulk_transport.hpp"
#include "comm/bulk/device_fabric.hpp"
#include "comm/bulk/transfer_matcher.hpp"
#include "comm/ucx/active_messages.hpp"
#include "comm/ucx/local_workers.hpp"
#include "gpups/stream.hpp"

namespace gpups::test {

// The state that the fabrics of all ranks share. As with NCCL, the i-th send from one rank to another matches the i-th
// receive, and the i-th sum of a rank matches the i-th sum of every other rank.
struct FabricHub {
  explicit FabricHub(int of_ranks) : ranks(static_cast<std::size_t>(of_ranks)) {}
  struct Side {
    void* data;
    std::size_t bytes;
    std::shared_ptr<std::atomic<int>> open;  // operations of its batch that are not complete
  };
  struct Pair {
    std::deque<Side> sends, receives;
  };
  struct Term {
    comm::FabricSum arrays;
    std::shared_ptr<std::atomic<int>> open;
  };
  std::size_t const ranks;
  std::mutex mutex;
  std::map<std::size_t, std::map<Rank, Term>> sums;  // by sequence number
  std::map<std::pair<Rank, Rank>, Pair> pairs;
  std::atomic<std::size_t> moved = 0, summed = 0;
};

// The device fabric of one rank.
class LocalFabric final : public comm::DeviceFabric {
 public:
  LocalFabric(Rank me, std::shared_ptr<FabricHub> hub) : me_(me), hub_(std::move(hub)) {}

  Device device() const override { return Device::host(); }
  Stream& stream() override { return stream_; }
  IsDone move(std::span<P2pOp const> operations) override {
    std::lock_guard lock(hub_->mutex);
    auto const open = std::make_shared<std::atomic<int>>(static_cast<int>(operations.size()));
    for (P2pOp const& operation : operations) {
      auto& pair = hub_->pairs[operation.sends ? std::pair(me_, operation.peer) : std::pair(operation.peer, me_)];
      (operation.sends ? pair.sends : pair.receives).push_back({operation.data, operation.bytes, open});
      if (!pair.sends.empty() && !pair.receives.empty()) match(pair);
    }
    return [this, open] { return *open == 0 || aborted_; };
  }
  IsDone sum(comm::FabricSum const& arrays) override {
    std::lock_guard lock(hub_->mutex);
    auto const open = std::make_shared<std::atomic<int>>(1);
    auto& all = hub_->sums[sums_];
    all.emplace(me_, FabricHub::Term{arrays, open});
    if (all.size() == hub_->ranks) fabric_allreduce(all);
    if (all.size() == hub_->ranks) hub_->sums.erase(sums_);
    ++sums_;
    return [this, open] { return *open == 0 || aborted_; };
  }
  void check() override {}
  bool is_given_up() const override { return aborted_; }
  void abort() noexcept override {
    std::lock_guard lock(hub_->mutex);
    aborted_ = true;
    for (auto& [number, all] : hub_->sums) all.erase(me_);
    for (auto& [ranks, pair] : hub_->pairs) {
      if (ranks.first == me_) pair.sends.clear();
      if (ranks.second == me_) pair.receives.clear();
    }
  }

 private:
  void fabric_allreduce(std::map<Rank, FabricHub::Term> const& all) {
    using Number = comm::FabricSum::Number;
    all.begin()->second.arrays.number == Number::kFloat ? add_up<float>(all) : add_up<std::int64_t>(all);
    for (auto const& [rank, term] : all) --*term.open;
    ++hub_->summed;
  }
  template <class T>
  static void add_up(std::map<Rank, FabricHub::Term> const& all) {
    std::vector<T> total(all.begin()->second.arrays.count);
    for (auto const& [rank, term] : all) {
      auto const* const terms = static_cast<T const*>(term.arrays.terms);
      for (std::size_t i = 0; i < total.size(); ++i) total[i] += terms[i];
    }
    for (auto const& [rank, term] : all) std::ranges::copy(total, static_cast<T*>(term.arrays.sums));
  }
  void match(FabricHub::Pair& pair) {
    auto const send = pair.sends.front(), receive = pair.receives.front();
    pair.sends.pop_front();
    pair.receives.pop_front();
    std::memcpy(receive.data, send.data, receive.bytes);
    --*send.open;
    --*receive.open;
    ++hub_->moved;
  }

  Rank const me_;
  std::shared_ptr<FabricHub> const hub_;
  Stream stream_{Device::host(), 1};
  std::atomic<bool> aborted_ = false;
  std::size_t sums_ = 0;  // sums that this rank has started
};

// A link that forwards all calls. `reaches`: whether it reaches device memory; if not, data is staged.
class ForwardingActiveMessages final : public comm::ActiveMessages {
 public:
  explicit ForwardingActiveMessages(std::shared_ptr<ActiveMessages> link, bool reaches = false)
      : link_(std::move(link)), reaches_(reaches) {}

  bool reaches(Device) const override { return reaches_; }

  Rank rank() const override { return link_->rank(); }
  int size() const override { return link_->size(); }
  void handle(comm::AmKind kind, Handler handler) override { link_->handle(kind, std::move(handler)); }
  void send(comm::AmProtocol protocol, Rank to, comm::AmKind kind, std::uint64_t number, std::uint64_t count,
            void const* data, std::size_t bytes, std::function<void()> sent) override {
    if (kind == comm::AmKind::kBulkPiece) ++pieces;
    link_->send(protocol, to, kind, number, count, data, bytes, std::move(sent));
  }
  void send(Rank to, comm::AmKind kind, std::uint64_t number, std::uint64_t count, std::string body) override {
    link_->send(to, kind, number, count, std::move(body));
  }
  void fetch(comm::AmArrival const& arrival, void* to, std::function<void()> fetched) override {
    link_->fetch(arrival, to, std::move(fetched));
  }
  void drop(comm::AmArrival const& arrival) override { link_->drop(arrival); }
  void on_broken(std::function<void(Rank, std::string const&)> broken) override { link_->on_broken(std::move(broken)); }
  void on_peer_error(void const* listener, OnPeerError wrong) override {
    link_->on_peer_error(listener, std::move(wrong));
  }
  bool progress() override { return link_->progress(); }
  void abandon() override { link_->abandon(); }
  std::recursive_mutex& mutex() override { return link_->mutex(); }

  std::size_t pieces = 0;  // staged pieces that were sent

 private:
  std::shared_ptr<ActiveMessages> const link_;
  bool const reaches_;
};

// Return connected bulk transports in rank order: over a device fabric, and staged.
inline std::vector<std::unique_ptr<comm::BulkTransport>> make_by_fabric(int ranks) {
  auto const hub = std::make_shared<FabricHub>(ranks);
  std::vector<std::unique_ptr<comm::BulkTransport>> ends;
  for (auto const& link : comm::make_local_ucx_workers(ranks)) {
    ends.push_back(comm::make_ucx_bulk_transport(link, std::make_shared<LocalFabric>(link->rank(), hub)));
  }
  return ends;
}
// The same between threads of a process, which use the fabric for sums only.
inline std::vector<std::unique_ptr<comm::BulkTransport>> make_threads_by_fabric(std::shared_ptr<FabricHub> const& hub) {
  auto const matcher = std::make_shared<comm::TransferMatcher>(static_cast<int>(hub->ranks));
  std::vector<std::unique_ptr<comm::BulkTransport>> ends;
  for (std::uint32_t rank = 0; rank < hub->ranks; ++rank) {
    ends.push_back(
        comm::make_local_bulk_transport(Rank{rank}, matcher, nullptr, std::make_shared<LocalFabric>(Rank{rank}, hub)));
  }
  return ends;
}
inline std::vector<std::unique_ptr<comm::BulkTransport>> make_staged(int ranks) {
  std::vector<std::unique_ptr<comm::BulkTransport>> ends;
  for (auto const& link : comm::make_local_ucx_workers(ranks)) {
    ends.push_back(comm::make_ucx_bulk_transport(std::make_shared<ForwardingActiveMessages>(link)));
  }
  return ends;
}
// Tests of routes that need no hardware use this as the check for it.
inline std::string lacks_nothing(int) { return {}; }

}  // namespace gpups::test
