// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "comm/bootstrap/core_affinity.hpp"
#include "kernels/base/assert.hpp"

namespace gpups::comm {
namespace {

using Cores = std::vector<int>;
using RankList = std::vector<std::size_t>;  // ranks, in ascending order

Cores sorted(Cores cores) {
  std::sort(cores.begin(), cores.end());
  return cores;
}

bool has(Cores const& ascending, int core) { return std::binary_search(ascending.begin(), ascending.end(), core); }

// Cuts `pool` into contiguous slices whose sizes differ by one core at most. REQUIRES: pool.size() >= members.size()
void split(Cores const& pool, RankList const& members, std::vector<Cores>& shares) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    auto const at = [&](std::size_t part) {
      return pool.begin() + static_cast<std::ptrdiff_t>(pool.size() * part / members.size());
    };
    shares[members[i]] = Cores(at(i), at(i + 1));
  }
}

// Returns the cores of `all` that are near the device of a rank, in the order of `all`.
Cores cores_near(Cores const& all, Cores const& near) {
  Cores const ascending = sorted(near);
  Cores found;
  std::copy_if(all.begin(), all.end(), std::back_inserter(found), [&](int core) { return has(ascending, core); });
  return found;
}

// Cores, and the ranks that share them.
struct Pool {
  Cores cores;
  RankList members;
};

// Returns one pool for each set of cores that is near a device, and one with the remaining cores for ranks that are
// near no core.
std::vector<Pool> pools_by_device(Cores const& all, RankList const& members, std::vector<Cores> const& near) {
  std::vector<Pool> pools;
  Pool rest{all, {}};
  for (std::size_t const member : members) {
    Cores wanted = cores_near(all, near[member]);
    if (wanted.empty()) {
      rest.members.push_back(member);
      continue;
    }
    auto const same = std::find_if(pools.begin(), pools.end(), [&](Pool const& pool) { return pool.cores == wanted; });
    if (same != pools.end()) {
      same->members.push_back(member);
    } else {
      pools.push_back({std::move(wanted), {member}});
    }
  }
  for (Pool const& pool : pools) {
    Cores const taken = sorted(pool.cores);
    std::erase_if(rest.cores, [&](int core) { return has(taken, core); });
  }
  if (!rest.members.empty()) pools.push_back(std::move(rest));
  return pools;
}

// Returns whether the pools are disjoint and each has at least one core for each of its ranks.
bool can_split(std::vector<Pool> const& pools) {
  Cores together;
  for (Pool const& pool : pools) {
    if (pool.cores.size() < pool.members.size()) return false;
    together.insert(together.end(), pool.cores.begin(), pool.cores.end());
  }
  together = sorted(together);
  return std::adjacent_find(together.begin(), together.end()) == together.end();
}

// Returns the ranks, ordered by their first near core in `all`; ranks that are near no core come last.
RankList order_by_nearness(Cores const& all, RankList members, std::vector<Cores> const& near) {
  auto const first_near = [&](std::size_t member) {
    Cores const ascending = sorted(near[member]);
    return std::find_if(all.begin(), all.end(), [&](int core) { return has(ascending, core); });
  };
  std::stable_sort(members.begin(), members.end(),
                   [&](std::size_t a, std::size_t b) { return first_near(a) < first_near(b); });
  return members;
}

}  // namespace

std::vector<Cores> partition_cores(std::vector<Cores> const& allowed, std::vector<Cores> const& near) {
  GPUPS_ASSERT(allowed.size() == near.size());
  std::map<Cores, RankList> groups;
  for (std::size_t rank = 0; rank < allowed.size(); ++rank) groups[sorted(allowed[rank])].push_back(rank);

  std::vector<Cores> shares = allowed;
  for (auto const& [set, members] : groups) {
    // A rank whose set differs from all others was bound by its launcher, even if other ranks may run on some of its
    // cores.
    if (members.size() == 1 || set.size() < members.size()) continue;
    Cores const& all = allowed[members.front()];
    std::vector<Pool> const pools = pools_by_device(all, members, near);
    if (can_split(pools)) {
      for (Pool const& pool : pools) split(pool.cores, pool.members, shares);
    } else {
      split(all, order_by_nearness(all, members, near), shares);
    }
  }
  return shares;
}

}  // namespace gpups::comm
