// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <memory>

#include "comm/bootstrap/core_affinity.hpp"
#include "kernels/base/build_config.hpp"

#if GPUPS_HAS_HWLOC
#include <hwloc.h>
#endif

namespace gpups::comm {

#if GPUPS_HAS_HWLOC

namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};

// Returns the position of each core in a walk through the tree of memories, caches and cores. Empty if hwloc fails.
std::map<int, unsigned> locality_order() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return {};
  std::unique_ptr<hwloc_topology, DestroyTopology> const topology(raw);
  if (hwloc_topology_load(raw) != 0) return {};
  std::map<int, unsigned> order;
  for (hwloc_obj_t unit = nullptr; (unit = hwloc_get_next_obj_by_type(raw, HWLOC_OBJ_PU, unit)) != nullptr;) {
    order[static_cast<int>(unit->os_index)] = unit->logical_index;
  }
  return order;
}

}  // namespace

std::vector<int> order_by_locality(std::vector<int> cores) {
  std::map<int, unsigned> const order = locality_order();
  // Cores that hwloc does not list come last.
  auto const key = [&order](int core) {
    auto const found = order.find(core);
    return std::pair(found == order.end() ? ~0U : found->second, core);
  };
  std::sort(cores.begin(), cores.end(), [&key](int a, int b) { return key(a) < key(b); });
  return cores;
}

#else

std::vector<int> order_by_locality(std::vector<int> cores) {
  std::sort(cores.begin(), cores.end());
  return cores;
}

#endif

}  // namespace gpups::comm
