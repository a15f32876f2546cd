// SPDX-License-Identifier: Apache-2.0
#include "comm/group/thread_group.hpp"

#include <utility>

#include "comm/bootstrap/host_name.hpp"
#include "comm/bulk/all_bulk_transports.hpp"
#include "comm/transport/all_transports.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {

void check_ranks(int ranks) {
  constexpr int kRanksMax = 1024;
  GPUPS_REQUIRE(ranks >= 1 && ranks <= kRanksMax,
                "a group of {} ranks cannot be made (each is a thread of this process): use 1 to {}", ranks, kRanksMax);
}

std::vector<std::shared_ptr<Group::Impl>> make_thread_group(
    int ranks, std::shared_ptr<LocalNetwork> const& network,
    std::function<std::unique_ptr<ProgressDriver>(Rank)> const& make_driver) {
  check_ranks(ranks);
  auto transports = make_local_transports(ranks, network);
  auto payloads = make_local_bulk_transports(ranks, network);
  std::vector<std::shared_ptr<Group::Impl>> impls;
  for (int rank = 0; rank < ranks; ++rank) {
    auto const i = static_cast<std::size_t>(rank);
    auto impl = std::make_shared<Group::Impl>();
    impl->transport = std::move(transports[i]);
    impl->bulk = std::move(payloads[i]);
    impl->driver = make_driver(Rank{static_cast<std::uint32_t>(rank)});
    impl->location = {.host = host_name(), .cores = {}, .local_rank = rank, .local_ranks = ranks};
    impl->cores_shared_by = impl->ranks_in_process = ranks;
    impls.push_back(std::move(impl));
  }
  return impls;
}

std::vector<Group> to_groups(std::vector<std::shared_ptr<Group::Impl>> const& impls) {
  return {impls.begin(), impls.end()};
}

}  // namespace gpups::comm
