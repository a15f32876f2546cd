// SPDX-License-Identifier: Apache-2.0
#include "comm/group/group_impl.hpp"

#include <fmt/core.h>

#include <utility>

#include "comm/base/host_name.hpp"
#include "comm/base/wakeup.hpp"
#include "comm/bootstrap/core_affinity.hpp"
#include "comm/bulk/bulk_transport.hpp"
#include "comm/bulk/transfer_matcher.hpp"
#include "comm/group/connect_devices.hpp"
#include "comm/progress/progress_driver.hpp"
#include "comm/sim/simulator.hpp"
#include "comm/transport/transport.hpp"
#include "kernels/base/check.hpp"

namespace gpups {
namespace comm {
namespace {

struct ThreadGroup final : Group::Impl {
  std::shared_ptr<TransferMatcher> matcher;

  // Data need no fabric: each thread reaches the memory of the others.
  std::string wait_connect_devices(Device device, ConnectOptions const& options) override {
    if (simulated) return {};
    auto const agreed = wait_connect_fabric(*this, device, options, [&](std::shared_ptr<DeviceFabric> const& fabric) {
      bulk.reset();  // before the new one receives
      bulk = make_local_bulk_transport(transport->rank(), matcher, nullptr, fabric);
    });
    if (agreed.fabric != nullptr) return "copies of threads, and NCCL for sums";
    if (agreed.why_not.empty()) return {};
    return fmt::format("copies of threads; sums not by NCCL, because {}", agreed.why_not);
  }
};

void check_ranks(int ranks) {
  constexpr int kRanksMax = 1024;
  GPUPS_REQUIRE(ranks >= 1 && ranks <= kRanksMax,
                "a group of {} ranks cannot be created (each rank is a thread of this process): use 1 to {}", ranks,
                kRanksMax);
}

std::vector<Group> to_groups(std::vector<std::shared_ptr<Group::Impl>> const& impls) {
  return {impls.begin(), impls.end()};
}

}  // namespace

std::vector<std::shared_ptr<Group::Impl>> make_thread_group(
    int ranks, std::shared_ptr<LocalNetwork> const& network,
    std::function<std::unique_ptr<ProgressDriver>(Rank)> const& make_driver) {
  check_ranks(ranks);
  auto transports = make_local_transports(ranks, network);
  auto const matcher = std::make_shared<TransferMatcher>(ranks);
  std::vector<std::shared_ptr<Group::Impl>> impls;
  auto const threads_of = std::make_shared<char const>('\0');
  for (int rank = 0; rank < ranks; ++rank) {
    auto const i = static_cast<std::size_t>(rank);
    auto impl = std::make_shared<ThreadGroup>();
    Rank const me{static_cast<std::uint32_t>(rank)};
    impl->transport = std::move(transports[i]);
    impl->matcher = matcher;
    impl->bulk = make_local_bulk_transport(me, matcher, network);
    impl->driver = make_driver(me);
    impl->location = {.host = host_name(), .cores = {}, .local_rank = rank, .local_ranks = ranks};
    impl->cores_shared_by = impl->ranks_in_process = ranks;
    impl->threads_of = threads_of;
    if (network == nullptr) impl->shares_host.assign(static_cast<std::size_t>(ranks), true);
    impls.push_back(std::move(impl));
  }
  return impls;
}

}  // namespace comm

Group Group::alone() { return threads(1).front(); }

std::vector<Group> Group::threads(int ranks) {
  return comm::to_groups(comm::make_thread_group(ranks, nullptr, [ranks](Rank) {
    return comm::make_threaded_driver([] { return std::make_unique<comm::LocalWakeupEvent>(); },
                                      [ranks] { return comm::cores_per_rank(ranks); });
  }));
}

std::vector<Group> Group::simulated(int ranks, Simulation const& options) {
  comm::check_ranks(ranks);
  auto const simulator = std::make_shared<comm::Simulator>(ranks, options);
  auto const impls = comm::make_thread_group(ranks, simulator->network(), [&](Rank rank) {
    return std::make_unique<comm::SimProgressDriver>(rank, simulator);
  });
  for (auto const& impl : impls) {
    Rank const rank = impl->transport->rank();
    impl->simulated = true;
    impl->run = [simulator, rank](std::function<void()> const& body) { simulator->run(rank, body); };
  }
  return comm::to_groups(impls);
}

}  // namespace gpups
