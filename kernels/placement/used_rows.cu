// SPDX-License-Identifier: Apache-2.0
#include "kernels/placement/used_rows.hpp"

#include <algorithm>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/index/bucket.hpp"
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

// Returns the first place of an ascending list, from `at` on, whose key is not less. Fast if it is near `at`: then no
// branch depends on how near.
GPUPS_FN inline std::uint32_t lower_bound_from(Key const* list, std::uint32_t at, std::uint32_t end, Key key) {
  constexpr std::uint32_t kNear = 8;
  for (int block = 0; block < 4 && end - at >= kNear; ++block) {
    std::uint32_t less = 0;
    for (std::uint32_t j = 0; j < kNear; ++j) less += list[at + j] < key ? 1 : 0;
    at += less;
    if (less < kNear) return at;
  }
  std::uint32_t high = at;
  for (std::uint32_t step = 1; high < end && list[high] < key; step *= 2) {
    at = high + 1;
    high = end - high > step ? high + step : end;
  }
  while (at < high) {
    std::uint32_t const middle = at + (high - at) / 2;
    list[middle] < key ? at = middle + 1 : high = middle;
  }
  return at;
}

// Keys that one thread searches, each from the place of the one before it.
inline constexpr std::size_t kSearchedKeys = 32;

// The keys of a table that are searched in a later run.
struct LaterSearch {
  Key const *keys, *run;
  std::uint32_t size, begin, end;
  std::uint32_t* to;
};
// The place of a key's first use in a later run has this bit; other keys have the place where it would be.
inline constexpr std::uint32_t kIsUsed = 1U << 31;

// The runs of a window, as an argument of a kernel.
struct Window {
  Key const* keys[kPolicyWindow];
  std::uint16_t const* ranks[kPolicyWindow];
  std::uint32_t steps_after[kPolicyWindow];
  std::uint32_t runs;
};

// Writes the users of a row in the ascending order of their ranks, and returns their number. left: the runs that have
// uses of it. at: its first use in each of these.
GPUPS_FN inline std::uint32_t write_users(Window const& window, Key key, std::uint32_t left, std::uint32_t* at,
                                          std::uint32_t const* end, RowUser* users) {
  std::uint32_t count = 0;
  while (left != 0) {
    std::uint32_t rank = ~0U, steps = 0;
    for (std::uint32_t runs = left; runs != 0; runs &= runs - 1) {
      unsigned const r = lowest_bit(runs);
      rank = std::min<std::uint32_t>(rank, window.ranks[r][at[r]]);
    }
    for (std::uint32_t runs = left; runs != 0; runs &= runs - 1) {
      unsigned const r = lowest_bit(runs);
      if (window.ranks[r][at[r]] != rank) continue;
      steps |= 1U << window.steps_after[r];
      bool more = true;
      do more = ++at[r] < end[r] && window.keys[r][at[r]] == key;
      while (more && window.ranks[r][at[r]] == rank);
      if (!more) left &= ~(1U << r);
    }
    users[count++] = {Rank{rank}, steps};
  }
  return count;
}

template <Space S>
void run(Exec<S> ex, ListUsers const& l) {
  Window window{};
  window.runs = static_cast<std::uint32_t>(l.window.size());
  GPUPS_ASSERT(window.runs > 0 && window.runs <= kPolicyWindow && l.window[0].steps_after == 0);
  GPUPS_ASSERT(l.later.size() >= (window.runs - 1) * l.keys.size());
  std::size_t const stride = l.keys.size();
  std::vector<LaterSearch> searches;
  for (std::uint32_t r = 0; r < window.runs; ++r) {
    window.keys[r] = l.window[r].keys.data();
    window.ranks[r] = l.window[r].ranks.data();
    window.steps_after[r] = l.window[r].steps_after;
    for (auto const& table : l.tables) {
      if (r == 0 || table.size == 0) continue;
      searches.push_back({.keys = l.keys.data() + table.first,
                          .run = window.keys[r],
                          .size = table.size,
                          .begin = table.begin[r],
                          .end = table.end[r],
                          .to = l.later.data() + (r - 1) * stride + table.first});
    }
  }
  SegmentList const searched(ex, std::move(searches), [](LaterSearch const& search) {
    return (search.size + kSearchedKeys - 1) / kSearchedKeys;
  });
  each_item(ex, searched.segments(), [] GPUPS_FN(LaterSearch const& s, std::size_t block) {
    std::size_t const first = block * kSearchedKeys;
    std::size_t const last = first + kSearchedKeys < s.size ? first + kSearchedKeys : s.size;
    std::uint32_t at = s.begin, high = s.end;
    while (at < high) {
      std::uint32_t const middle = at + (high - at) / 2;
      s.run[middle] < s.keys[first] ? at = middle + 1 : high = middle;
    }
    for (std::size_t i = first; i < last; ++i) {
      at = lower_bound_from(s.run, at, s.end, s.keys[i]);
      bool const is_used = at < s.end && s.run[at] == s.keys[i];
      s.to[i] = at | (is_used ? kIsUsed : 0);
    }
  });
  SegmentList const tables(ex, std::vector<UsedTable>(l.tables.begin(), l.tables.end()),
                           [](UsedTable const& table) { return table.size; });
  each_item(ex, tables.segments(),
            [window, stride, keys = l.keys, heads = l.heads, later = l.later, first_user = l.first_user,
             user_count = l.user_count, users = l.users] GPUPS_FN(UsedTable const& table, std::size_t i) {
              std::size_t const row = table.first + i;
              std::uint32_t at[kPolicyWindow];
              // The uses of a row are at disjoint places of each run, so the sums of these places have room for its
              // users.
              std::uint32_t first = at[0] = heads[row], used = 1;
              for (std::uint32_t r = 1; r < window.runs; ++r) {
                std::uint32_t const place = later[(r - 1) * stride + row];
                first += at[r] = place & ~kIsUsed;
                used |= (place >> 31) << r;
              }
              first_user[row] = first;
              user_count[row] = write_users(window, keys[row], used, at, table.end.data(), users.data() + first);
            });
}

GPUPS_KERNEL(rank_uses, RankUses)
GPUPS_KERNEL(list_used_keys, ListUsedKeys)
GPUPS_KERNEL(list_users, ListUsers)

}  // namespace gpups::kernels
