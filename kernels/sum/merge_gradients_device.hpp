// SPDX-License-Identifier: Apache-2.0
// Merges gradients on a GPU. An entry is a row of a list, numbered over all lists of all tables. The first entry of
// each row claims it, by the mark of the row. A scan over all entries counts the claims before each, which gives the
// slots of rows. Entries with a sum are chained by row, in any order: the sum of a chain in 128 bits does not depend on
// it.
#pragma once

#include <cub/device/device_scan.cuh>
#include <span>
#include <utility>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/base/contribution.hpp"
#include "kernels/codec/packed_row.hpp"
#include "kernels/runtime/device_scratch.hpp"
#include "kernels/runtime/segments.hpp"
#include "kernels/sum/merge_gradients.hpp"

namespace gpups::kernels {

// A list, and its table.
struct MergedList {
  GradientList list;
  std::size_t dim;
  Rows<std::uint64_t> mark;
  std::uint32_t epoch;
  std::uint32_t first;                    // the list's first entry
  std::uint32_t table_first, table_last;  // the table's entries are table_first .. table_last - 1
  std::size_t teams;                      // of the first list of each table: one for each entry, and one; of others: 0
  View<std::uint32_t> ids, count, bad_row;
  MatrixView<std::int64_t> sums, in_place;
  std::uint32_t rows_in_place;  // of the first list of the table: its slots are below

  // Returns whether row i has a sum.
  GPUPS_FN bool has_sum(std::size_t i) const {
    return list.marked.empty() || (list.marked[i / 32] >> (i % 32) & 1U) != 0;
  }
};
using MergedLists = Segments<MergedList>;

// The arrays of one call.
struct MergeScratch {
  std::uint64_t* rank;  // (entries + 1): claims before each entry, and in the high half sums before it
  std::uint32_t* head;  // (entries): by slot, the last entry of the row's chain, or kNoRow
  std::uint32_t* next;  // (entries): the next entry of the chain, or kNoRow

  GPUPS_FN std::uint32_t claims(std::uint32_t entry) const { return static_cast<std::uint32_t>(rank[entry]); }
  GPUPS_FN std::uint32_t sums(std::uint32_t entry) const { return static_cast<std::uint32_t>(rank[entry] >> 32); }
};

// Writes the smallest entry of this epoch to the mark of a row.
__device__ inline void claim_row(std::uint64_t* mark, std::uint32_t epoch, std::uint32_t entry) {
  std::uint64_t const mine = std::uint64_t{epoch} << 32 | entry;
  std::uint64_t seen = atomic_load(mark);
  while (seen >> 32 != epoch || seen > mine) {
    std::uint64_t const before = atomic_exchange_if(mark, seen, mine);
    if (before == seen) return;
    seen = before;
  }
}

// The columns that a lane adds up at a time: j, j + kLanes ...
inline constexpr unsigned kMergedColumns = 4;

// Adds columns of a packed row.
struct AddPackedColumns {
  std::uint8_t const* from;
  std::size_t first, dim;  // the first column of the lane
  Int128* sum;             // (kMergedColumns)

  template <std::size_t W>
  __device__ void as() const {
#pragma unroll
    for (unsigned c = 0; c < kMergedColumns; ++c) {
      std::size_t const j = first + c * kLanes;
      if (j < dim) sum[c] += load_bytes<W>(from + j * W, from + dim * W);
    }
  }
};

// Adds columns of the sum of row i of a list.
__device__ inline void add_columns(NativeLanes lanes, MergedList const& l, std::uint32_t i, std::uint32_t sum_row,
                                   std::size_t first, Int128 (&sum)[kMergedColumns]) {
  if (l.list.packed.rows == 0) {
    std::int64_t const* const from = l.list.sums.row(sum_row);
#pragma unroll
    for (unsigned c = 0; c < kMergedColumns; ++c) {
      std::size_t const j = first + c * kLanes;
      if (j < l.dim) sum[c] += from[j];
    }
    return;
  }
  std::uint8_t const* const bytes = l.list.packed.bytes.data();
  std::uint32_t const width = packed_width(bytes, i);
  if (width == 0) return;
  std::size_t const block = i / kPackedBlockRows, begin = block * kPackedBlockRows;
  std::uint64_t const before =
      lanes.sum_words(i - begin, [&](std::size_t k) { return packed_width(bytes, begin + k) * l.dim; });
  std::size_t const at = packed_header_bytes(l.list.packed.rows) + l.list.starts[block] + before;
  with_width(width, AddPackedColumns{bytes + at, first, l.dim, sum});
}

// Adds up the sums of a row. table: the first list of its table. A lane writes the columns that it has read.
__device__ inline void sum_chain(NativeLanes lanes, MergedLists const& lists, MergeScratch const& s,
                                 MergedList const& table, std::uint32_t slot) {
  bool const in_place = slot < table.rows_in_place;
  if (in_place && s.next[s.head[table.table_first + slot]] == kNoRow) return;  // nothing is added
  std::uint32_t const position = in_place && !table.list.positions.empty() ? table.list.positions[slot] : slot;
  std::int64_t* const to = in_place ? table.in_place.row(position) : table.sums.row(slot - table.rows_in_place);
  std::size_t const stride = table.sums.stride();
  bool fits = true;
  for (std::size_t begin = 0; begin < stride; begin += kMergedColumns * kLanes) {
    Int128 sum[kMergedColumns] = {};
    for (std::uint32_t e = s.head[table.table_first + slot]; e != kNoRow; e = s.next[e]) {
      MergedList const& l = lists.list[lists.segment_of(e)];
      std::uint32_t const i = e - l.first;
      std::uint32_t sum_row = l.list.positions.empty() ? i : l.list.positions[i];
      if (!l.list.marked.empty()) sum_row = s.sums(e) - s.sums(l.first);
      add_columns(lanes, l, i, sum_row, begin + lanes.lane, sum);
    }
#pragma unroll
    for (unsigned c = 0; c < kMergedColumns; ++c) {
      std::size_t const j = begin + lanes.lane + c * kLanes;
      if (j >= stride) continue;
      to[j] = static_cast<std::int64_t>(sum[c]);
      fits = fits && WideSum{sum[c], true}.fits();
    }
  }
  if (fits) return;
  atomic_min(table.bad_row.data(), in_place ? table.list.ids[slot] : table.ids[slot - table.rows_in_place]);
}

// Appends the lists of a table. A table without rows has one list, without rows, which writes its count.
inline void list_table(MergeGradients const& m, std::size_t& entries, std::vector<MergedList>& all) {
  std::size_t const begin = all.size(), first = entries;
  auto const add = [&](GradientList const& list) {
    all.push_back({.list = list,
                   .dim = m.dim,
                   .mark = m.mark,
                   .epoch = m.epoch,
                   .first = static_cast<std::uint32_t>(entries),
                   .table_first = static_cast<std::uint32_t>(first),
                   .ids = m.ids,
                   .count = m.count,
                   .bad_row = m.bad_row,
                   .sums = m.sums,
                   .in_place = m.in_place,
                   .rows_in_place = static_cast<std::uint32_t>(m.rows_in_place())});
    entries += list.ids.size();
  };
  for (auto const& list : m.lists) {
    if (!list.ids.empty()) add(list);
  }
  if (all.size() == begin) add({});
  for (std::size_t k = begin; k < all.size(); ++k) all[k].table_last = static_cast<std::uint32_t>(entries);
  all[begin].teams = entries - first + 1;
}

inline void merge_gradients(DeviceExec ex, std::span<MergeGradients const> tables) {
  std::vector<MergedList> all;
  std::size_t entries = 0;
  for (auto const& table : tables) list_table(table, entries, all);
  GPUPS_ASSERT(entries < kNoRow);
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  StreamScratch const memory(ex, (entries + 1) * sizeof(std::uint64_t) + 2 * entries * sizeof(std::uint32_t));
  auto* const rank = static_cast<std::uint64_t*>(memory.data());
  auto* const head = reinterpret_cast<std::uint32_t*>(rank + entries + 1);
  MergeScratch const s{rank, head, head + entries};
  check_cuda(cudaMemsetAsync(rank + entries, 0, sizeof *rank, stream), "clearing a count");
  check_cuda(cudaMemsetAsync(head, 0xFF, entries * sizeof *head, stream), "clearing chains");

  SegmentList<MergedList, 2, SentSegments::kAny> const list(
      ex, std::move(all), [](MergedList const& l) { return l.list.ids.size(); },
      [](MergedList const& l) { return l.teams; });
  MergedLists const lists = list.segments(0);
  each_item(ex, lists, [] GPUPS_FN(MergedList const& l, std::size_t i) {
    claim_row(l.mark.row(l.list.ids[i]), l.epoch, l.first + static_cast<std::uint32_t>(i));
  });
  each_item(ex, lists, [s] GPUPS_FN(MergedList const& l, std::size_t i) {
    std::uint32_t const entry = l.first + static_cast<std::uint32_t>(i);
    bool const claims = static_cast<std::uint32_t>(*l.mark.row(l.list.ids[i])) == entry;
    s.rank[entry] = std::uint64_t{l.has_sum(i)} << 32 | std::uint64_t{claims};
  });
  run_in_stream(ex, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(scratch, bytes, rank, rank, static_cast<std::int64_t>(entries + 1), stream);
  });
  each_item(ex, lists, [s] GPUPS_FN(MergedList const& l, std::size_t i) {
    std::uint32_t const entry = l.first + static_cast<std::uint32_t>(i), id = l.list.ids[i];
    auto const first = static_cast<std::uint32_t>(*l.mark.row(id));
    std::uint32_t const slot = s.claims(first) - s.claims(l.table_first);
    if (first == entry && slot >= l.rows_in_place) l.ids[slot - l.rows_in_place] = id;
    if (l.has_sum(i)) s.next[entry] = atomic_exchange(s.head + l.table_first + slot, entry);
  });
  each_row_item(ex, list.segments(1), [s, lists] GPUPS_FN(MergedList const& table, std::size_t i, NativeLanes lanes) {
    std::uint32_t const count = s.claims(table.table_last) - s.claims(table.table_first);
    if (i + 1 == table.teams && lanes.first()) table.count[0] = count - table.rows_in_place;
    if (i < count) sum_chain(lanes, lists, s, table, static_cast<std::uint32_t>(i));
  });
}

}  // namespace gpups::kernels
