// SPDX-License-Identifier: Apache-2.0
// Merges gradients on the host: the lists of a table one after another, with all threads.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/contribution.hpp"
#include "kernels/codec/each_packed_row.hpp"
#include "kernels/runtime/compact.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/sum/add_sums.hpp"
#include "kernels/sum/merge_gradients.hpp"

namespace gpups::kernels {

// Assigns one slot to each row that a step uses, even if several lists contain the row.
struct AssignSlots {
  View<std::uint32_t const> ids;  // (k), distinct
  Rows<std::uint64_t> mark;       // stride 1: epoch << 32 | slot of each row; 0 for a new row
  std::uint32_t epoch;            // identifies the step; at least 1
  std::uint32_t first_new;        // number of slots that were assigned in this epoch so far
  View<std::uint32_t> slots;  // (k), output: the slot of each row; a row without a slot in this epoch gets the next one
  View<std::uint32_t> new_ids;  // (>= k), output: the rows that had no slot, in order; new_ids[j] gets first_new + j
};

// Assigns the slots. Returns the number of new ones.
inline std::size_t assign_slots(HostExec ex, AssignSlots const& a) {
  GPUPS_ASSERT(a.epoch > 0 && a.slots.size() >= a.ids.size() && a.new_ids.size() >= a.ids.size());
  each(ex, a.ids.size(), [a](std::size_t i) {
    std::uint64_t const mark = *a.mark.row(a.ids[i]);
    a.slots[i] = mark >> 32 == a.epoch ? static_cast<std::uint32_t>(mark) : kNoRow;
  });
  auto const is_new = [a](std::size_t i) { return a.slots[i] == kNoRow; };
  auto const assign = [a](std::size_t i, std::uint32_t rank) {
    std::uint32_t const id = a.ids[i];
    std::uint32_t const slot = a.first_new + rank;
    *a.mark.row(id) = std::uint64_t{a.epoch} << 32 | slot;
    a.slots[i] = slot;
    a.new_ids[rank] = id;
  };
  return compact(ex, a.ids.size(), is_new, assign);
}

// Adds row i of a list to wide sums. row: (dim), scratch; marked: the number of marked rows before row i.
inline void add_wide(GradientList const& list, std::size_t i, std::size_t dim, std::size_t& marked, std::int64_t* row,
                     Int128* to) {
  std::int64_t const* from = row;
  if (list.packed.rows > 0) {
    std::fill_n(row, dim, 0);
    std::size_t const first = i / kPackedBlockRows * kPackedBlockRows;
    std::size_t start = packed_header_bytes(list.packed.rows) + list.starts[first / kPackedBlockRows];
    for (std::size_t k = first; k < i; ++k) start += packed_width(list.packed.bytes.data(), k) * dim;
    std::uint32_t const width = packed_width(list.packed.bytes.data(), i);
    if (width > 0) add_packed_row(list.packed.bytes.data() + start, dim, width, row, HostLanes{});
  } else if (list.marked.empty()) {
    from = list.sums.row(list.positions.empty() ? i : list.positions[i]);
  } else if ((list.marked[i / 32] >> (i % 32) & 1U) != 0) {
    from = list.sums.row(marked++);
  } else {
    return;
  }
  for (std::size_t j = 0; j < dim; ++j) to[j] += from[j];
}

// Returns the smallest row whose sum is outside int64, or kNoRow. Additions have reported an overflow, which another
// addition may have undone. Slow, but overflows end the training. slots: of the rows of each list, in order, below
// `slots_end`.
inline std::uint32_t find_bad_row(MergeGradients const& m, std::vector<std::uint32_t> const& slots,
                                  std::size_t slots_end) {
  std::vector<Int128> sums(slots_end * m.dim, 0);
  Matrix<std::int64_t> const unpacked(Device::host(), 1, m.dim);
  std::size_t const in_place = m.rows_in_place();
  std::size_t entry = 0;
  for (auto const& list : m.lists) {
    std::size_t marked = 0;
    for (std::size_t i = 0; i < list.ids.size(); ++i, ++entry) {
      if (entry < in_place) continue;
      add_wide(list, i, m.dim, marked, unpacked.view().data(), &sums[slots[entry] * m.dim]);
    }
  }
  // What was in place before: the sum of all lists, which has wrapped around, without the other lists.
  for (std::size_t k = 0; k < in_place; ++k) {
    for (std::size_t j = 0; j < m.dim; ++j) {
      auto& sum = sums[slots[k] * m.dim + j];
      sum += static_cast<std::int64_t>(static_cast<std::uint64_t>(m.in_place.row(slots[k])[j]) -
                                       static_cast<std::uint64_t>(sum));
    }
  }
  std::uint32_t bad = kNoRow;
  entry = 0;
  for (auto const& list : m.lists) {
    for (std::size_t i = 0; i < list.ids.size(); ++i, ++entry) {
      auto const* const sum = &sums[slots[entry] * m.dim];
      if (std::any_of(sum, sum + m.dim, [](Int128 of) { return !WideSum{of, true}.fits(); })) {
        bad = std::min(bad, list.ids[i]);
      }
    }
  }
  return bad;
}

// Adds the sums of a list to the rows `slots`: those of m.in_place, and then those of m.sums. bad_slot: (1), see
// AddPackedSums.
inline void add_list(HostExec ex, MergeGradients const& m, GradientList const& list, View<std::uint32_t const> slots,
                     View<std::uint32_t> bad_slot) {
  if (list.packed.rows > 0) {
    AddPackedSums const added{list.packed, list.starts, slots, m.in_place, bad_slot, m.sums};
    return each_packed_row(ex, std::vector<AddPackedRow>{{added}});
  }
  MergeSums added{m.in_place, slots, list.sums, bad_slot, list.positions, m.sums};
  Array<std::uint32_t> const marked(Device::host(), list.marked.empty() ? 0 : slots.size());
  if (!list.marked.empty()) {
    std::size_t const count = compact(
        ex, slots.size(), [&](std::size_t i) { return (list.marked[i / 32] >> (i % 32) & 1U) != 0; },
        [&](std::size_t i, std::uint32_t rank) { marked[rank] = slots[i]; });
    added.slots = marked.view().slice(0, count);
  }
  add_sums(ex, added);
}

// Gives each row of a list whose sums are in place the slot of its sums.
inline void assign_positions(HostExec ex, MergeGradients const& m, View<std::uint32_t> slots) {
  each(ex, slots.size(), [&m, slots, ids = m.lists[0].ids, positions = m.lists[0].positions](std::size_t i) {
    slots[i] = positions.empty() ? static_cast<std::uint32_t>(i) : positions[i];
    *m.mark.row(ids[i]) = std::uint64_t{m.epoch} << 32 | slots[i];
  });
}

inline void merge_table(HostExec ex, MergeGradients const& m) {
  std::size_t total = 0;
  for (auto const& list : m.lists) total += list.ids.size();
  std::vector<std::uint32_t> slots(total), bad_slot{kNoRow};
  std::size_t rows = 0, entry = m.rows_in_place();
  std::size_t const first_slot = m.in_place.rows();
  if (entry > 0) assign_positions(ex, m, View<std::uint32_t>(slots).slice(0, entry));
  for (auto const& list : m.lists.subspan(entry > 0 ? 1 : 0)) {
    std::size_t const n = list.ids.size();
    if (n == 0) continue;
    auto const here = View<std::uint32_t>(slots).slice(entry, n);
    entry += n;
    std::size_t const fresh = assign_slots(ex, {.ids = list.ids,
                                                .mark = m.mark,
                                                .epoch = m.epoch,
                                                .first_new = static_cast<std::uint32_t>(first_slot + rows),
                                                .slots = here,
                                                .new_ids = m.ids.slice(rows, m.ids.size() - rows)});
    std::size_t const stride = m.sums.stride();
    std::int64_t* const to = m.sums.row(rows);
    ex.arena->blocks((fresh + kBlockRows - 1) / kBlockRows, [&](std::size_t block) {
      std::fill(to + block * kBlockRows * stride, to + std::min((block + 1) * kBlockRows, fresh) * stride, 0);
    });
    rows += fresh;
    add_list(ex, m, list, here, bad_slot);
  }
  m.count[0] = static_cast<std::uint32_t>(rows);
  if (bad_slot[0] != kNoRow) m.bad_row[0] = std::min(m.bad_row[0], find_bad_row(m, slots, first_slot + rows));
}

inline void merge_gradients(HostExec ex, std::span<MergeGradients const> tables) {
  for (auto const& table : tables) merge_table(ex, table);
}

}  // namespace gpups::kernels
