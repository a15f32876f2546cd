// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/policy.hpp"

#include <algorithm>

#include "kernels/hash.hpp"

namespace gpups::cache {
namespace {

// The announced uses of one row by one rank.
struct RankUses {
  Rank rank{};
  std::uint32_t uses = 0;
  bool now = false;  // uses the row in the step that is decided
};

// Counts the uses of one row by rank. Kept by the caller, so that memory is allocated once.
void count_uses(std::span<RowUse const> uses, Clock step, std::vector<RankUses>& counts) {
  counts.clear();
  for (auto const& use : uses) {
    auto found = std::find_if(counts.begin(), counts.end(), [&](auto const& one) { return one.rank == use.reader; });
    if (found == counts.end()) found = counts.insert(found, RankUses{.rank = use.reader});
    ++found->uses;
    found->now = found->now || use.step == step;
  }
  std::sort(counts.begin(), counts.end(), [](auto const& a, auto const& b) { return a.rank < b.rank; });
}

// Moves a row to the rank that uses it most, if its owner does not use it in the step.
Rank relocate(Rank owner, std::vector<RankUses> const& counts) {
  RankUses best{.rank = owner};
  for (auto const& one : counts) {
    if (!one.now) continue;
    if (one.rank == owner) return owner;
    if (one.uses > best.uses) best = one;
  }
  return best.rank;
}

// Sends the fewest bytes, if the row does not move again.
Rank adapt(Rank owner, std::vector<RankUses> const& counts, RowBytes const& bytes) {
  std::uint32_t all = 0, by_owner = 0;
  for (auto const& one : counts) {
    all += one.uses;
    if (one.rank == owner) by_owner = one.uses;
  }
  double const of_use = bytes.read + bytes.update;
  double least = (all - by_owner) * of_use;
  Rank best = owner;
  for (auto const& one : counts) {
    double const sent = (all - one.uses) * of_use + bytes.move;
    if (!one.now || one.rank == owner || sent >= least) continue;
    least = sent;
    best = one.rank;
  }
  return best;
}

Rank choose_randomly(Rank owner, Key key, Clock step, std::vector<RankUses> const& counts) {
  std::vector<Rank> ranks{owner};
  for (auto const& one : counts) {
    if (one.now && one.rank != owner) ranks.push_back(one.rank);
  }
  auto const number_of_step = static_cast<std::uint64_t>(number(step));
  return ranks[kernels::mix(number(key) ^ kernels::mix(number_of_step)) % ranks.size()];
}

}  // namespace
}  // namespace gpups::cache

namespace gpups {

char const* name_of(PlacementPolicy policy) {
  switch (policy) {
    case PlacementPolicy::kStatic:
      return "static";
    case PlacementPolicy::kRelocate:
      return "relocate";
    case PlacementPolicy::kAdaptive:
      return "adaptive";
    case PlacementPolicy::kRandom:
      return "random";
  }
  return "unknown";
}

}  // namespace gpups

namespace gpups::cache {

std::vector<Rank> choose_owners(PlacementPolicy policy, UsedRows const& rows) {
  std::vector<Rank> owners(rows.owners.begin(), rows.owners.end());
  if (policy == PlacementPolicy::kStatic) return owners;
  std::vector<RankUses> counts;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    auto const first = rows.first_use[i];
    count_uses(rows.uses.subspan(first, rows.first_use[i + 1] - first), rows.step, counts);
    switch (policy) {
      case PlacementPolicy::kStatic:
        break;
      case PlacementPolicy::kRelocate:
        owners[i] = relocate(owners[i], counts);
        break;
      case PlacementPolicy::kAdaptive:
        owners[i] = adapt(owners[i], counts, rows.bytes);
        break;
      case PlacementPolicy::kRandom:
        owners[i] = choose_randomly(owners[i], rows.keys[i], rows.step, counts);
        break;
    }
  }
  return owners;
}

}  // namespace gpups::cache
