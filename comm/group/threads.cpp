// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/core_affinity.hpp"
#include "comm/group/thread_group.hpp"
#include "comm/progress/local_wakeup_event.hpp"
#include "comm/progress/threaded_driver.hpp"

namespace gpups {

std::vector<Group> Group::threads(int ranks) {
  return comm::to_groups(comm::make_thread_group(ranks, nullptr, [ranks](Rank) {
    return comm::make_threaded_driver([] { return std::make_unique<comm::LocalWakeupEvent>(); },
                                      [ranks] { return comm::cores_per_rank(ranks); });
  }));
}

}  // namespace gpups
