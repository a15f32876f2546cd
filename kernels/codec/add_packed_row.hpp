// SPDX-License-Identifier: Apache-2.0
// The body of add_packed_sums(), which merge_gradients() also uses on the host.
#pragma once

#include "kernels/base/atomic.hpp"
#include "kernels/codec/pack_sums.hpp"
#include "kernels/codec/packed_row.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// For each_packed_row(): adds a row to its target.
struct AddPackedRow {
  AddPackedSums a;

  GPUPS_ANY_FN PackedRows const& rows() const { return a.rows; }
  GPUPS_FN View<std::uint64_t const> const& starts() const { return a.starts; }
  GPUPS_FN std::uint32_t slot(std::size_t i) const {
    return a.slots.empty() ? static_cast<std::uint32_t>(i) : a.slots[i];
  }
  GPUPS_FN void operator()(std::size_t i, std::uint32_t width, std::uint8_t const* from, NativeLanes lanes) const {
    std::size_t const dim = a.rows.dim;
    if (i + kRowsAhead < a.rows.rows) {
      lanes.prefetch(a.into.row(slot(i + kRowsAhead)), dim * sizeof(std::int64_t));
    }
    if (width == 0) return;
    bool const overflows = add_packed_row(from, dim, width, a.into.row(slot(i)), lanes);
    if (overflows && lanes.first()) atomic_min(a.bad_row.data(), slot(i));
  }
};

}  // namespace gpups::kernels
