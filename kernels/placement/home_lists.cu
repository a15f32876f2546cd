// SPDX-License-Identifier: Apache-2.0
#include "kernels/placement/home_lists.hpp"

#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/placement/partition.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, PlaceUses const& p) {
  SegmentList const tables(ex, std::vector<UsedTable>(p.tables.begin(), p.tables.end()),
                           [](UsedTable const& table) { return table.size; });
  each_item(ex, tables.segments(),
            [ranks = p.run.ranks, positions = p.positions, heads = p.heads, owners = p.owners, chosen = p.chosen,
             placed = p.placed] GPUPS_FN(UsedTable const& table, std::size_t i) {
              std::size_t const row = table.first + i;
              std::uint32_t const end = i + 1 < table.size ? heads[row + 1] : table.first_use + table.uses;
              for (std::uint32_t u = heads[row]; u < end; ++u) {
                bool const repeated = u > heads[row] && ranks[u] == ranks[u - 1];
                placed[positions[u]] = RowOwners::word(owners[row], chosen[row], repeated);
              }
            });
}

// A part of a batch with the number of its first use, and its own.
struct NumberedPart {
  PartUses part;
  std::uint32_t first, number;
};

// Sets a flag that several rows set. After that, no branch depends on a row.
GPUPS_FN inline void set_flag_if(std::uint32_t* flag, bool condition) {
  if (atomic_load(flag) == 0 && condition) atomic_or(flag, 1);
}

template <Space S>
void run(Exec<S> ex, ListUses const& l) {
  std::vector<NumberedPart> parts;
  std::uint32_t first = 0;
  for (auto const& part : l.parts) {
    parts.push_back({part, first, static_cast<std::uint32_t>(parts.size())});
    first += part.uses;
  }
  std::uint32_t const uses = first;
  GPUPS_ASSERT(l.placed.size() == uses && l.list_of.size() >= 2 * std::size_t{uses} &&
               l.away.size() >= 2 * parts.size());
  each(ex, 2 * parts.size(), [away = l.away] GPUPS_FN(std::size_t i) { away[i] = 0; });
  SegmentList const numbered(ex, std::move(parts), [](NumberedPart const& part) { return part.part.uses; });
  each_item(ex, numbered.segments(),
            [uses, home = l.home, lists_of_owner = l.lists_of_owner, placed = l.placed, list_of = l.list_of,
             away = l.away] GPUPS_FN(NumberedPart const& of, std::size_t i) {
              auto const& part = of.part;
              std::size_t const use = of.first + i;
              RowOwners const row = RowOwners::of(placed[use]);
              auto const list = [&](std::uint32_t owner, RowRole role) {
                return owner * lists_of_owner + part.first_list + static_cast<std::uint32_t>(role) * part.parts;
              };
              bool const moves = row.moves(), arrives = moves & (row.in_step == part.reader);
              RowRole role = moves ? RowRole::kRead : RowRole::kReadAndUpdate;
              if (arrives) role = RowRole::kMove;
              // A row that several parts use moves with the first of them.
              bool const is_listed = (row.before != part.reader) & !(arrives & row.repeated);
              list_of[use] = select(is_listed, list(row.before, role), kNoList);
              list_of[uses + use] = select(moves & !arrives, list(row.in_step, RowRole::kUpdate), kNoList);
              set_flag_if(&away[2 * of.number], row.before != home);
              set_flag_if(&away[2 * of.number + 1], moves);
            });
}

struct TakeKeys {
  View<Key const> keys;
  View<std::uint32_t const> items;
  View<Key> to;
};

template <Space S>
void run(Exec<S> ex, TakeKeys const& t) {
  GPUPS_ASSERT(t.items.size() >= t.to.size());
  each(ex, t.to.size(), [t, n = static_cast<std::uint32_t>(t.keys.size())] GPUPS_FN(std::size_t i) {
    std::uint32_t const item = t.items[i];
    t.to[i] = t.keys[item < n ? item : item - n];
  });
}

template <Space S>
void run(Exec<S> ex, WriteRoutes const& w) {
  SegmentList const parts(ex, std::vector<PartRoute>(w.parts.begin(), w.parts.end()),
                          [](PartRoute const& part) { return part.uses; });
  each_item(ex, parts.segments(),
            [placed = w.placed, bytes = w.rank_bytes] GPUPS_FN(PartRoute const& part, std::size_t i) {
              RowOwners const row = RowOwners::of(placed[part.first_use + i]);
              if (!part.before.empty()) write_rank(part.before.data(), i, row.before, bytes);
              if (!part.in_step.empty()) write_rank(part.in_step.data(), i, row.in_step, bytes);
            });
}

// A list with its number.
struct NumberedKeys {
  KeysOfHome list;
  std::uint32_t number;
};
struct FindForeign {
  std::span<KeysOfHome const> lists;
  std::uint32_t homes;
  View<std::uint32_t> foreign;
};

template <Space S>
void run(Exec<S> ex, FindForeign const& f) {
  GPUPS_ASSERT(f.foreign.size() == f.lists.size());
  std::vector<NumberedKeys> lists;
  for (auto const& list : f.lists) lists.push_back({list, static_cast<std::uint32_t>(lists.size())});
  each(ex, lists.size(), [foreign = f.foreign] GPUPS_FN(std::size_t i) { foreign[i] = kNoRow; });
  SegmentList const all(ex, std::move(lists), [](NumberedKeys const& numbered) { return numbered.list.keys.size(); });
  each_item(ex, all.segments(),
            [homes = f.homes, foreign = f.foreign] GPUPS_FN(NumberedKeys const& numbered, std::size_t i) {
              if (home_of(numbered.list.keys[i], homes) == numbered.list.home) return;
              atomic_min(&foreign[numbered.number], static_cast<std::uint32_t>(i));
            });
}

GPUPS_KERNEL(place_uses, PlaceUses)
GPUPS_KERNEL(list_uses, ListUses)
GPUPS_KERNEL(take_keys_of, TakeKeys)
GPUPS_KERNEL(write_routes, WriteRoutes)
GPUPS_KERNEL(find_foreign_of_all, FindForeign)

#ifndef __CUDACC__
void find_foreign(Stream& stream, std::span<KeysOfHome const> lists, std::uint32_t homes, View<std::uint32_t> foreign) {
  find_foreign_of_all(stream, {lists, homes, foreign});
}
void take_keys(Stream& stream, View<Key const> keys, View<std::uint32_t const> items, View<Key> to) {
  take_keys_of(stream, {keys, items, to});
}
#endif

}  // namespace gpups::kernels
