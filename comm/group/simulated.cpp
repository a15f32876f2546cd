// SPDX-License-Identifier: Apache-2.0
#include "comm/group/simulated.hpp"

#include "comm/group/of_process.hpp"
#include "comm/turner/sim.hpp"

namespace gpups {

std::vector<Group> Group::simulated(int ranks, Simulation const& options) {
  comm::check_ranks(ranks);
  auto const world = std::make_shared<comm::SimWorld>(ranks, options);
  auto const impls = comm::group_of_process(ranks, world->network(),
                                            [&](Rank rank) { return std::make_unique<comm::SimTurner>(rank, world); });
  for (auto const& impl : impls) {
    Rank const rank = impl->transport->rank();
    impl->simulated = true;
    impl->run = [world, rank](std::function<void()> const& body) { world->run(rank, body); };
  }
  return comm::as_groups(impls);
}

std::uint64_t comm::event_digest(Group const& group) {
  return dynamic_cast<SimTurner const&>(*group.impl().turner).world().network()->digest();
}

}  // namespace gpups
