// SPDX-License-Identifier: Apache-2.0
#include "kernels/placement/window_users.hpp"

#include <bit>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

// A table with what is merged.
struct MergedLists {
  Key const* keys;
  WindowUser const* users;
  std::uint32_t const* count;
  Key const* use_keys;
  std::uint16_t const* use_ranks;
  std::uint32_t uses, first_block, blocks, number, to;
};

// The users and uses that one thread merges.
template <Space S>
constexpr std::uint32_t kMerged = S == Space::kHost ? kMergedOnHost : kMergedOnDevice;

// Where a block begins: elements of both lists that are not in the blocks before it.
struct MergePlace {
  std::uint32_t user, use;
};

// The merged order: by key, then by rank; a user comes before its use.
GPUPS_FN inline bool use_is_less(MergedLists const& t, std::uint32_t use, std::uint32_t user) {
  if (t.use_keys[use] != t.keys[user]) return t.use_keys[use] < t.keys[user];
  return t.use_ranks[use] < number(t.users[user].rank);
}
GPUPS_FN inline bool is_use_of(MergedLists const& t, std::uint32_t use, Key key, std::uint32_t rank) {
  return t.use_keys[use] == key && t.use_ranks[use] == rank;
}

// Returns the first use from `use` on that is not one of this key by this rank. Logarithmic.
GPUPS_FN inline std::uint32_t end_of_uses(MergedLists const& t, std::uint32_t use, Key key, std::uint32_t rank) {
  if (use == t.uses || !is_use_of(t, use, key, rank)) return use;
  std::uint32_t step = 1;
  for (; t.uses - use > step && is_use_of(t, use + step, key, rank); step *= 2) use += step;
  std::uint32_t end = t.uses - use > step ? use + step : t.uses;
  while (end - use > 1) {
    std::uint32_t const middle = use + (end - use) / 2;
    is_use_of(t, middle, key, rank) ? use = middle : end = middle;
  }
  return end;
}

// Returns where the merged element `at` is. All uses of a user are in one block: that of the user, or of its first use.
GPUPS_FN inline MergePlace merge_place(MergedLists const& t, std::uint32_t count, std::uint32_t at) {
  at = at < count + t.uses ? at : count + t.uses;
  std::uint32_t low = at > t.uses ? at - t.uses : 0, high = at < count ? at : count;
  while (low < high) {
    std::uint32_t const middle = low + (high - low) / 2;
    use_is_less(t, at - 1 - middle, middle) ? high = middle : low = middle + 1;
  }
  MergePlace place{low, at - low};
  if (place.user > 0) {
    place.use = end_of_uses(t, place.use, t.keys[place.user - 1], number(t.users[place.user - 1].rank));
  }
  if (place.use > 0) {
    place.use = end_of_uses(t, place.use, t.use_keys[place.use - 1], t.use_ranks[place.use - 1]);
  }
  return place;
}

// The steps of a merge.
struct MergedSteps {
  std::uint32_t kept, bit;
};

// Calls emit(key, user) for each user of a block, in order; one without steps is dropped.
template <Space S, class Emit>
GPUPS_FN inline void merge_block(MergedLists const& t, std::size_t block, MergedSteps steps, Emit emit) {
  std::uint32_t const count = *t.count, first = static_cast<std::uint32_t>(block) * kMerged<S>;
  auto [user, use] = merge_place(t, count, first);
  MergePlace const end = merge_place(t, count, first + kMerged<S>);
  while (user < end.user && use < end.use) {
    Key const key = t.keys[user], used = t.use_keys[use];
    auto const [rank, ring] = t.users[user];
    std::uint32_t const by = t.use_ranks[use];
    bool const is_same_key = key == used;
    bool const is_use = (used < key) | (is_same_key & (by <= number(rank)));  // perhaps of this user
    bool const is_user = (key < used) | (is_same_key & (number(rank) <= by));
    emit(is_user ? key : used,
         WindowUser{is_user ? rank : Rank{by}, (is_user ? ring & steps.kept : 0) | (is_use ? steps.bit : 0)});
    user += is_user ? 1 : 0;
    use += is_use ? 1 : 0;
    if (is_use & (use < end.use) && is_use_of(t, use, used, by)) use = end_of_uses(t, use, used, by);
  }
  for (; user < end.user; ++user) emit(t.keys[user], {t.users[user].rank, t.users[user].step_ring & steps.kept});
  while (use < end.use) {
    Key const used = t.use_keys[use];
    std::uint32_t const by = t.use_ranks[use];
    emit(used, {Rank{by}, steps.bit});
    use = end_of_uses(t, use, used, by);
  }
}

inline std::vector<MergedLists> merged_lists(MergeUses const& m) {
  std::vector<MergedLists> lists;
  for (auto const& table : m.tables) {
    auto const number = static_cast<std::uint32_t>(lists.size());
    lists.push_back({.keys = m.before.keys.data() + table.first_user,
                     .users = m.before.users.data() + table.first_user,
                     .count = m.before.counts.data() + number,
                     .use_keys = m.run.keys.data() + table.first_use,
                     .use_ranks = m.run.ranks.data() + table.first_use,
                     .uses = table.uses,
                     .first_block = table.first_block,
                     .blocks = table.blocks,
                     .number = number,
                     .to = table.to});
  }
  return lists;
}

template <Space S>
void run(Exec<S> ex, CountMergedUses const& m) {
  SegmentList const tables(ex, merged_lists(m), [](MergedLists const& t) { return t.blocks; });
  GPUPS_ASSERT(tables.items() == m.counts.size());
  each_large_item<1>(
      ex, tables.segments(),
      [steps = MergedSteps{m.kept, m.bit}, counts = m.counts] GPUPS_FN(MergedLists const& t, std::size_t block) {
        std::uint32_t count = 0;
        merge_block<S>(t, block, steps, [&](Key, WindowUser user) { count += user.step_ring != 0 ? 1 : 0; });
        counts[t.first_block + block] = count;
      });
}

template <Space S>
void run(Exec<S> ex, WriteMergedUses const& m) {
  SegmentList const tables(ex, merged_lists(m), [](MergedLists const& t) { return t.blocks; });
  GPUPS_ASSERT(tables.items() + 1 == m.block_at.size() && m.keys.size() == m.users.size());
  for ([[maybe_unused]] auto const& table : m.tables) {
    GPUPS_ASSERT(m.keys.size() >= std::uint64_t{table.to} + table.users_max + table.uses);
  }
  each(ex, m.counts.size(), [counts = m.counts] GPUPS_FN(std::size_t t) { counts[t] = 0; });
  each_large_item<1>(ex, tables.segments(),
                     [steps = MergedSteps{m.kept, m.bit}, at = m.block_at, keys = m.keys, users = m.users,
                      counts = m.counts] GPUPS_FN(MergedLists const& t, std::size_t block) {
                       std::uint32_t next = t.to + (block == 0 ? 0 : at[t.first_block + block] - at[t.first_block]);
                       merge_block<S>(t, block, steps, [&](Key key, WindowUser user) {
                         if (user.step_ring == 0) return;
                         keys[next] = key;
                         users[next++] = user;
                       });
                       if (block + 1 == t.blocks) counts[t.number] = next - t.to;
                     });
}

// Keys that one thread searches, each from the place of the one before it.
inline constexpr std::size_t kSearchedKeys = 32;

// The rows of a table, and the window's users of the table.
struct SearchedTable {
  UsedTable rows;
  std::uint32_t first_user;  // of the window
  Key const* keys;
  WindowUser const* users;
  std::uint32_t const* count;
};

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

template <Space S>
void run(Exec<S> ex, ListUsers const& l) {
  std::vector<SearchedTable> tables;
  for (auto const& [rows, first] : l.tables) {
    tables.push_back({rows, first, l.window.keys.data() + first, l.window.users.data() + first,
                      l.window.counts.data() + tables.size()});
  }
  SegmentList const searched(ex, std::move(tables), [](SearchedTable const& table) {
    return (table.rows.size + kSearchedKeys - 1) / kSearchedKeys;
  });
  auto const turn = static_cast<int>(static_cast<std::uint64_t>(number(l.step)) % 32);
  each_large_item(ex, searched.segments(),
                  [turn, valid = l.valid, keys = l.keys, first_user = l.first_user, user_count = l.user_count,
                   users = l.users] GPUPS_FN(SearchedTable const& t, std::size_t block) {
                    std::size_t const begin = t.rows.first + block * kSearchedKeys;
                    std::size_t const left = t.rows.size - block * kSearchedKeys;
                    std::uint32_t const count = *t.count;
                    std::uint32_t at = 0, high = count;
                    while (at < high) {
                      std::uint32_t const middle = at + (high - at) / 2;
                      t.keys[middle] < keys[begin] ? at = middle + 1 : high = middle;
                    }
                    for (std::size_t row = begin; row < begin + (left < kSearchedKeys ? left : kSearchedKeys); ++row) {
                      Key const key = keys[row];
                      at = lower_bound_from(t.keys, at, count, key);
                      std::uint32_t const first = t.first_user + at;
                      std::uint32_t listed = 0;
                      for (; at < count && t.keys[at] == key; ++at) {
                        std::uint32_t const steps = t.users[at].step_ring & valid;
                        if (steps != 0) users[first + listed++] = {t.users[at].rank, std::rotr(steps, turn)};
                      }
                      first_user[row] = first;
                      user_count[row] = listed;
                    }
                  });
}

GPUPS_KERNEL(count_merged_uses, CountMergedUses)
GPUPS_KERNEL(write_merged_uses, WriteMergedUses)
GPUPS_KERNEL(list_users, ListUsers)

}  // namespace gpups::kernels
