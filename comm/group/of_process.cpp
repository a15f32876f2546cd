// SPDX-License-Identifier: Apache-2.0
#include "comm/group/of_process.hpp"

#include <utility>

#include "comm/host_name.hpp"
#include "comm/payload/local.hpp"
#include "comm/transport/local.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {

void check_ranks(int ranks) {
  constexpr int kRanksMax = 1024;
  GPUPS_REQUIRE(ranks >= 1 && ranks <= kRanksMax,
                "a group of {} ranks cannot be made (each is a thread of this process): use 1 to {}", ranks, kRanksMax);
}

std::vector<std::shared_ptr<Group::Impl>> group_of_process(
    int ranks, std::shared_ptr<Network> const& network,
    std::function<std::unique_ptr<Turner>(Rank)> const& make_turner) {
  check_ranks(ranks);
  auto transports = make_local_transports(ranks, network);
  auto payloads = make_local_payloads(ranks, network);
  std::vector<std::shared_ptr<Group::Impl>> impls;
  for (int rank = 0; rank < ranks; ++rank) {
    auto const i = static_cast<std::size_t>(rank);
    auto impl = std::make_shared<Group::Impl>();
    impl->transport = std::move(transports[i]);
    impl->payload = std::move(payloads[i]);
    impl->turner = make_turner(Rank{static_cast<std::uint32_t>(rank)});
    impl->place = {.host = host_name(), .cores = {}, .local_rank = rank, .local_ranks = ranks};
    impl->cores_shared_by = impl->ranks_of_process = ranks;
    impls.push_back(std::move(impl));
  }
  return impls;
}

std::vector<Group> as_groups(std::vector<std::shared_ptr<Group::Impl>> const& impls) {
  return {impls.begin(), impls.end()};
}

}  // namespace gpups::comm
