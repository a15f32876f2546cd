// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/selected_rows.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/runtime/compact.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

struct ListFlaggedCounted {
  ListFlagged list;
  std::size_t* count;  // on the host
};
struct ListMarkedCounted {
  ListMarked list;
  std::size_t* count;
};
struct ListMarkedOfAll {
  std::span<ListMarked const> lists;
  View<std::uint32_t> counts;
};

GPUPS_FN inline bool is_listed(ListMarked const& l, std::size_t i) {
  return ((l.bitmap[i / 32] >> (i % 32) & 1U) != 0) == l.marked;
}
GPUPS_FN inline void list_row(ListMarked const& l, std::size_t i, std::uint32_t rank) {
  l.taken[rank] = l.from.empty() ? static_cast<std::uint32_t>(i) : l.from[i];
}

template <Space S>
void run(Exec<S> ex, ListFlaggedCounted const& counted) {
  ListFlagged const l = counted.list;
  GPUPS_ASSERT(l.rows.size() >= l.flags.size() && l.from.size() >= l.flags.size() && l.taken.size() >= l.flags.size());
  *counted.count = wait_compact(
      ex, l.rows.device(), l.flags.size(), [l] GPUPS_FN(std::size_t i) { return l.flags[i] != 0; },
      [l] GPUPS_FN(std::size_t i, std::uint32_t rank) {
        l.rows[rank] = static_cast<std::uint32_t>(i);
        l.taken[rank] = l.from[i];
      });
}

template <Space S>
void run(Exec<S> ex, ListMarkedCounted const& counted) {
  ListMarked const l = counted.list;
  GPUPS_ASSERT(l.taken.size() >= l.n && l.bitmap.size() >= bitmap_words(l.n));
  *counted.count = wait_compact(
      ex, l.taken.device(), l.n, [l] GPUPS_FN(std::size_t i) { return is_listed(l, i); },
      [l] GPUPS_FN(std::size_t i, std::uint32_t rank) { list_row(l, i, rank); });
}

template <Space S>
void run(Exec<S> ex, ListMarkedOfAll const& all) {
  GPUPS_ASSERT(all.counts.size() >= all.lists.size());
  std::vector<std::size_t> sizes;
  for (auto const& list : all.lists) sizes.push_back(list.n);
  compact_lists(
      ex, all.lists, sizes, all.counts, [] GPUPS_FN(ListMarked const& l, std::size_t i) { return is_listed(l, i); },
      [] GPUPS_FN(ListMarked const& l, std::size_t i, std::uint32_t rank) { list_row(l, i, rank); });
}

template <Space S>
void run(Exec<S> ex, IndicesToBitmap const& m) {
  // The thread with the first index of a word computes the whole word.
  each(ex, m.bitmap.size(), [m] GPUPS_FN(std::size_t word) { m.bitmap[word] = 0; });
  each(ex, m.indices.size(), [m] GPUPS_FN(std::size_t i) {
    std::uint32_t const word = m.indices[i] / 32;
    if (i > 0 && m.indices[i - 1] / 32 == word) return;
    std::uint32_t bits = 0;
    for (std::size_t j = i; j < m.indices.size() && m.indices[j] / 32 == word; ++j) bits |= 1U << (m.indices[j] % 32);
    m.bitmap[word] = bits;
  });
}

GPUPS_KERNEL(list_flagged_counted, ListFlaggedCounted)
GPUPS_KERNEL(list_marked_counted, ListMarkedCounted)
GPUPS_KERNEL(list_marked_of_all, ListMarkedOfAll)
GPUPS_KERNEL(indices_to_bitmap, IndicesToBitmap)

#ifndef __CUDACC__
std::size_t wait_list_flagged(Stream& stream, ListFlagged const& arguments) {
  std::size_t count = 0;
  list_flagged_counted(stream, {arguments, &count});
  return count;
}
std::size_t wait_list_marked(Stream& stream, ListMarked const& arguments) {
  std::size_t count = 0;
  list_marked_counted(stream, {arguments, &count});
  return count;
}
void list_marked(Stream& stream, std::span<ListMarked const> lists, View<std::uint32_t> counts) {
  list_marked_of_all(stream, {lists, counts});
}
#endif

GPUPS_FN inline bool is_of_kind(std::uint32_t word, RowStatus kind) {
  if (kind == RowStatus::kExist) return exists(word);
  return kind == RowStatus::kWait ? waits(word) : word == 0;
}

struct SelectRowsCounted {
  SelectRows select;
  std::size_t* count;  // on the host
};

template <Space S>
void run(Exec<S> ex, SelectRowsCounted const& counted) {
  SelectRows const s = counted.select;
  GPUPS_ASSERT(s.first <= s.last && s.ids.size() >= s.last - s.first);
  *counted.count = wait_compact(
      ex, s.ids.device(), s.last - s.first,
      [s] GPUPS_FN(std::size_t i) {
        return is_of_kind(*s.lifecycle.row(s.first + static_cast<std::uint32_t>(i)), s.kind);
      },
      [s] GPUPS_FN(std::size_t i, std::uint32_t rank) { s.ids[rank] = s.first + static_cast<std::uint32_t>(i); });
}

GPUPS_KERNEL(select_rows_counted, SelectRowsCounted)

#ifndef __CUDACC__
std::size_t wait_select_rows(Stream& stream, SelectRows const& arguments) {
  std::size_t count = 0;
  select_rows_counted(stream, {arguments, &count});
  return count;
}
#endif

}  // namespace gpups::kernels
