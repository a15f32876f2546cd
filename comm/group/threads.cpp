// SPDX-License-Identifier: Apache-2.0
#include "comm/cluster/cores.hpp"
#include "comm/doorbell.hpp"
#include "comm/group/of_process.hpp"
#include "comm/turner/threaded.hpp"

namespace gpups {

std::vector<Group> Group::threads(int ranks) {
  return comm::as_groups(comm::group_of_process(ranks, nullptr, [ranks](Rank) {
    return comm::make_threaded_turner([] { return std::make_unique<comm::Doorbell>(); },
                                      [ranks] { return comm::share_size(ranks); });
  }));
}

}  // namespace gpups
