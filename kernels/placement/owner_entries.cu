// SPDX-License-Identifier: Apache-2.0
#include "kernels/placement/owner_entries.hpp"

#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/base/prefetch.hpp"
#include "kernels/runtime/compact.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

// An entry, in the words of a column.
struct OwnerEntry {
  std::uint32_t owner, reason;
  std::int64_t since;

  GPUPS_FN static OwnerEntry read(std::uint32_t const* words) {
    return {words[0], words[1], static_cast<std::int64_t>(words[2] | std::uint64_t{words[3]} << 32)};
  }
  GPUPS_FN void write(std::uint32_t* words) const {
    words[0] = owner;
    words[1] = reason;
    words[2] = static_cast<std::uint32_t>(since);
    words[3] = static_cast<std::uint32_t>(static_cast<std::uint64_t>(since) >> 32);
  }
};

// Returns what is known about a row in a step.
GPUPS_FN inline OwnerEntry entry_at(Rows<std::uint32_t const> entries, std::uint32_t id, std::uint32_t home,
                                    std::int64_t step) {
  if (id == kNoRow) return {home, 0, 0};
  std::uint32_t const* const words = entries.row(id);
  OwnerEntry const now = OwnerEntry::read(words);
  return now.since <= step ? now : OwnerEntry::read(words + kOwnerWords / 2);
}

// Prefetches an entry, or the first one for a row without a number: no branch depends on which rows have numbers.
GPUPS_FN inline void prefetch_entry(Rows<std::uint32_t const> entries, std::uint32_t id) {
  if (entries.stride > 0) prefetch(entries.row(id & ((id == kNoRow ? 1U : 0U) - 1)));
}

struct ReadAllEntries {
  std::span<ReadEntries const> lists;
  std::uint32_t home;
  std::int64_t step;
  bool owners_only;
};

template <Space S>
void run(Exec<S> ex, ReadAllEntries const& r) {
  SegmentList const lists(ex, std::vector<ReadEntries>(r.lists.begin(), r.lists.end()),
                          [](ReadEntries const& list) { return list.ids.size(); });
  each_item(
      ex, lists.segments(),
      [home = r.home, step = r.step, owners_only = r.owners_only] GPUPS_FN(ReadEntries const& list, std::size_t i) {
        if (i + kItemsAhead < list.ids.size()) prefetch_entry(list.entries, list.ids[i + kItemsAhead]);
        OwnerEntry const entry = entry_at(list.entries, list.ids[i], home, step);
        owners_only ? void(list.out[i] = entry.owner) : entry.write(list.out.data() + 4 * i);
      });
}

// A table with its number.
struct NumberedRows {
  MovedRows rows;
  std::uint32_t number;
};

template <Space S>
void run(Exec<S> ex, ListMoved const& l) {
  std::size_t const count = l.tables.size();
  GPUPS_ASSERT(l.counts.size() == 3 * count);
  std::vector<NumberedRows> tables;
  std::vector<std::size_t> sizes;
  for (auto const& table : l.tables) {
    tables.push_back({table, static_cast<std::uint32_t>(tables.size())});
    sizes.push_back(table.size);
  }
  each(ex, 2 * count, [counts = l.counts, count] GPUPS_FN(std::size_t i) { counts[count + i] = 0; });
  auto const pick = [owners = l.owners, chosen = l.chosen] GPUPS_FN(NumberedRows const& t, std::size_t i) {
    return owners[t.rows.first + i] != chosen[t.rows.first + i];
  };
  auto const emit = [keys = l.keys, ids = l.ids, owners = l.owners, chosen = l.chosen, home = number(l.home),
                     absent = l.counts.data() + count,
                     returned = l.counts.data() + 2 * count] GPUPS_FN(NumberedRows const& t, std::size_t i,
                                                                      std::uint32_t rank) {
    std::size_t const row = t.rows.first + i;
    t.rows.moved[rank] = static_cast<std::uint32_t>(row);
    t.rows.ids[rank] = ids[row];
    t.rows.keys[rank] = keys[row];
    if (ids[row] == kNoRow) {
      atomic_add(absent + t.number, 1U);
    } else if (chosen[row] == home) {
      atomic_add(returned + t.number, 1U);
    } else if (owners[row] == home) {
      atomic_add(returned + t.number, ~0U);
    }
  };
  compact_lists(ex, std::span<NumberedRows const>(tables), sizes, l.counts.slice(0, count), pick, emit);
}

template <Space S>
void run(Exec<S> ex, PlanMoves const& p) {
  SegmentList const tables(ex, std::vector<MoveEntries>(p.tables.begin(), p.tables.end()),
                           [](MoveEntries const& table) { return table.moved.size(); });
  each_item(ex, tables.segments(),
            [known = p.known_ids, owners = p.owners, chosen = p.chosen, since = number(p.since)] GPUPS_FN(
                MoveEntries const& table, std::size_t i) {
              std::uint32_t const row = table.moved[i];
              std::uint32_t* const words = table.entries.row(table.ids[i]);
              OwnerEntry before{owners[row], static_cast<std::uint32_t>(PlacementReason::kHome), 0};
              if (known[row] != kNoRow) before = OwnerEntry::read(words);
              before.write(words + kOwnerWords / 2);
              OwnerEntry{chosen[row], static_cast<std::uint32_t>(PlacementReason::kPolicy), since}.write(words);
            });
}

template <Space S>
void run(Exec<S> ex, SetEntries const& s) {
  GPUPS_ASSERT(s.words.size() == 4 * s.ids.size());
  each(ex, s.ids.size(), [s] GPUPS_FN(std::size_t i) {
    OwnerEntry const entry = OwnerEntry::read(s.words.data() + 4 * i);
    entry.write(s.entries.row(s.ids[i]));
    entry.write(s.entries.row(s.ids[i]) + kOwnerWords / 2);
  });
}

struct ListReturnedCounted {
  ListReturned list;
  std::size_t* count;  // on the host
};

template <Space S>
void run(Exec<S> ex, ListReturnedCounted const& counted) {
  ListReturned const l = counted.list;
  GPUPS_ASSERT(l.returned.size() >= l.ids.size());
  *counted.count = wait_compact(
      ex, l.ids.device(), l.ids.size(),
      [l, home = number(l.home), step = number(l.step)] GPUPS_FN(std::size_t i) {
        OwnerEntry const entry = OwnerEntry::read(l.entries.row(l.ids[i]));
        return entry.owner == home && entry.since < step;
      },
      [l] GPUPS_FN(std::size_t i, std::uint32_t rank) { l.returned[rank] = l.ids[i]; });
}

GPUPS_KERNEL(read_all_entries, ReadAllEntries)
GPUPS_KERNEL(list_moved, ListMoved)
GPUPS_KERNEL(plan_moves, PlanMoves)
GPUPS_KERNEL(set_entries, SetEntries)
GPUPS_KERNEL(list_returned_counted, ListReturnedCounted)

#ifndef __CUDACC__
void read_owners(Stream& stream, std::span<ReadEntries const> lists, Rank home, Clock step) {
  read_all_entries(stream, {lists, number(home), number(step), true});
}
void read_entries(Stream& stream, std::span<ReadEntries const> lists, Rank home, Clock step) {
  read_all_entries(stream, {lists, number(home), number(step), false});
}
std::size_t wait_list_returned(Stream& stream, ListReturned const& arguments) {
  std::size_t count = 0;
  list_returned_counted(stream, {arguments, &count});
  return count;
}
#endif

}  // namespace gpups::kernels
