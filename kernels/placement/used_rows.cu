// SPDX-License-Identifier: Apache-2.0
#include "kernels/placement/used_rows.hpp"

#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/runtime/compact.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, RankUses const& r) {
  GPUPS_ASSERT(r.ranks.size() == r.positions.size());
  SegmentList<RankUses::UsesOfRank, 1, SentSegments::kAny> const all(
      ex, std::vector<RankUses::UsesOfRank>(r.lists.begin(), r.lists.end()),
      [](RankUses::UsesOfRank const& list) { return list.uses; });
  GPUPS_ASSERT(all.items() == r.positions.size());
  each(ex, r.positions.size(),
       [segments = all.segments(), positions = r.positions, ranks = r.ranks] GPUPS_FN(std::size_t i) {
         ranks[i] = static_cast<std::uint16_t>(segments.list[segments.segment_of(positions[i])].rank);
       });
}

// The uses of a table, and where its keys go.
struct KeyHeads {
  Key const* uses;
  Key* keys;
  std::uint32_t* heads;
  std::uint32_t first_use;
};

template <Space S>
void run(Exec<S> ex, ListUsedKeys const& l) {
  std::vector<KeyHeads> tables;
  std::vector<std::size_t> sizes;
  for (auto const& [first, uses] : l.tables) {
    tables.push_back({l.uses.data() + first, l.keys.data() + first, l.heads.data() + first, first});
    sizes.push_back(uses);
  }
  compact_lists(
      ex, std::span<KeyHeads const>(tables), sizes, l.counts,
      [] GPUPS_FN(KeyHeads const& t, std::size_t i) { return i == 0 || t.uses[i] != t.uses[i - 1]; },
      [] GPUPS_FN(KeyHeads const& t, std::size_t i, std::uint32_t rank) {
        t.keys[rank] = t.uses[i];
        t.heads[rank] = t.first_use + static_cast<std::uint32_t>(i);
      });
}

GPUPS_KERNEL(rank_uses, RankUses)
GPUPS_KERNEL(list_used_keys, ListUsedKeys)

}  // namespace gpups::kernels
