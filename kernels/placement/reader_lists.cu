// SPDX-License-Identifier: Apache-2.0
#include "kernels/placement/reader_lists.hpp"

#include <bit>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/base/prefetch.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

// The rows of a home, with the number of the first one.
struct NumberedRoute {
  RoutedRows rows;
  std::uint32_t first, number;
};

GPUPS_FN inline std::uint32_t owner_in(View<std::uint8_t const> column, std::size_t i, std::uint32_t bytes,
                                       std::uint32_t otherwise) {
  return column.empty() ? otherwise : read_rank(column.data(), i, bytes);
}

template <Space S>
void run(Exec<S> ex, ReadRoutes const& r) {
  std::vector<NumberedRoute> homes;
  std::uint32_t rows = 0;
  for (auto const& home : r.homes) {
    homes.push_back({home, rows, static_cast<std::uint32_t>(homes.size())});
    rows += static_cast<std::uint32_t>(home.positions.size());
  }
  GPUPS_ASSERT(r.positions.size() == rows && r.wrong.size() == homes.size());
  each(ex, homes.size(), [wrong = r.wrong] GPUPS_FN(std::size_t i) { wrong[i] = 0; });
  SegmentList const all(ex, std::move(homes), [](NumberedRoute const& home) { return home.rows.positions.size(); });
  each_item(ex, all.segments(),
            [ranks = r.ranks, bytes = r.rank_bytes, positions = r.positions, owners = r.owners, keys = r.keys,
             wrong = r.wrong] GPUPS_FN(NumberedRoute const& route, std::size_t i) {
              std::uint32_t const position = route.rows.positions[i];
              if (i + kItemsAhead < route.rows.positions.size()) {
                prefetch(route.rows.keys.data() + route.rows.positions[i + kItemsAhead]);
              }
              std::uint32_t before = owner_in(route.rows.before, i, bytes, route.rows.home);
              std::uint32_t in_step = owner_in(route.rows.in_step, i, bytes, before);
              if (before >= ranks || in_step >= ranks) {
                atomic_or(&wrong[route.number], 1);
                before = in_step = route.rows.home;
              }
              positions[route.first + i] = position;
              keys[route.first + i] = route.rows.keys[position];
              owners[route.first + i] = RowOwners::word(before, in_step, false);
            });
}

template <Space S>
void run(Exec<S> ex, ListRows const& l) {
  std::size_t const rows = l.order.size();
  GPUPS_ASSERT(l.list_of.size() == 2 * rows && l.differ.size() == l.parts.size());
  SegmentList<ListRows::RowRange, 1, SentSegments::kAny> const parts(
      ex, std::vector<ListRows::RowRange>(l.parts.begin(), l.parts.end()),
      [](ListRows::RowRange const& part) { return part.size; });
  each(ex, l.parts.size(), [differ = l.differ] GPUPS_FN(std::size_t i) { differ[i] = 0; });
  SegmentList const tables(ex, std::vector<ListRows::RowRange>(l.tables.begin(), l.tables.end()),
                           [](ListRows::RowRange const& table) { return table.size; });
  each_item(
      ex, tables.segments(),
      [parts = parts.segments(), rows, sorted = l.sorted, order = l.order, owners = l.owners, ranks = l.ranks,
       me = l.me, list_of = l.list_of, differ = l.differ] GPUPS_FN(ListRows::RowRange const& table, std::size_t i) {
        std::size_t const at = table.first + i;
        std::uint32_t const part = parts.segment_of(order[at]);
        std::uint32_t const first = part * lists_of_part(ranks);
        RowOwners const row = RowOwners::of(owners[order[at]]);
        bool const is_first = i == 0 || sorted[at] != sorted[at - 1];  // of the parts of its table
        bool const arrives = row.moves() & (row.in_step == me), leaves = row.moves() & (row.before == me);
        std::uint32_t from = select(row.before == me, staying_list(ranks), reads_list(row.before));
        if (arrives) from = is_first ? arriving_list(ranks, row.before) : repeated_list(ranks);
        if (leaves) from = leaving_list(ranks);
        list_of[at] = first + from;
        list_of[rows + at] = first + select(row.in_step == me, local_list(ranks), updates_list(ranks, row.in_step));
        if (atomic_load(&differ[part]) == 0 && row.moves() && !arrives) atomic_or(&differ[part], 1);
      });
}

// Sorts positions below `rows`: those of a list whose order does not matter.
inline void sort_positions(HostExec ex, TakePositions const& t) {
  ex.arena->blocks(t.unordered.size(), [&](std::size_t l) {
    auto const& [first, size, rows] = t.unordered[l];
    std::uint32_t* const list = t.taken.data() + first;
    std::vector<std::uint64_t> bits(rows / 64 + 1);
    for (std::uint32_t i = 0; i < size; ++i) bits[list[i] / 64] |= std::uint64_t{1} << (list[i] % 64);
    std::uint32_t* to = list;
    for (std::uint32_t w = 0; w < bits.size(); ++w) {
      for (std::uint64_t word = bits[w]; word != 0; word &= word - 1) {
        *to++ = 64 * w + static_cast<std::uint32_t>(std::countr_zero(word));
      }
    }
  });
}
inline void sort_positions(DeviceExec, TakePositions const&) {}

template <Space S>
void run(Exec<S> ex, TakePositions const& t) {
  GPUPS_ASSERT(t.items.size() >= t.taken.size());
  each(ex, t.taken.size(), [t, rows = static_cast<std::uint32_t>(t.order.size())] GPUPS_FN(std::size_t i) {
    std::uint32_t const item = t.items[i];
    t.taken[i] = t.positions[t.order[item < rows ? item : item - rows]];
  });
  sort_positions(ex, t);
}

template <Space S>
void run(Exec<S> ex, ListAnswers const& l) {
  GPUPS_ASSERT(l.list_of.size() == l.items.size());
  each(ex, l.items.size(), [l] GPUPS_FN(std::size_t i) {
    std::uint32_t const row = l.order[l.items[i]];
    l.list_of[i] = RowOwners::of(l.owners[row]).before * l.ranks + home_of(l.keys[row], l.ranks);
  });
}

GPUPS_KERNEL(read_routes, ReadRoutes)
GPUPS_KERNEL(list_rows, ListRows)
GPUPS_KERNEL(take_positions, TakePositions)
GPUPS_KERNEL(list_answers, ListAnswers)

}  // namespace gpups::kernels
