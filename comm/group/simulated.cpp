// SPDX-License-Identifier: Apache-2.0
#include "comm/group/simulated.hpp"

#include "comm/group/thread_group.hpp"
#include "comm/sim/progress_driver.hpp"

namespace gpups {

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

std::uint64_t comm::event_digest(Group const& group) {
  return dynamic_cast<SimProgressDriver const&>(*group.impl().driver).simulator().network()->digest();
}

}  // namespace gpups
