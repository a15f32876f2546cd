// SPDX-License-Identifier: Apache-2.0
// Rows of values of which somebody has copies: which of them have changed enough to be sent, and how copies follow.
// Reads 8 bytes per element.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/row_storage.hpp"
#include "kernels/wire/accumulate_residual.hpp"

namespace gpups::kernels {

// The change of row i is values.row(i) less the copy in slot slots[i]. A row that has changed is to be sent if the
// largest magnitude of its change is at least the bound, or if it may have differed from its copy for `age` steps:
// since the step after the last that named it and found it the same, however many there are between that one and this.
// What was never named has a copy that may be of any age. A row that was named in this step before stays as it was
// then: it is sent once, or not.
struct ChangedRows {
  MatrixView<float const> values;   // (n, dim)
  View<std::uint32_t const> slots;  // (n), distinct
  Rows<float const> mirrors;        // stride >= dim
  Rows<std::uint32_t> marks;        // as AccumulateResidual has them
  std::uint32_t now;
  std::uint32_t age;  // 0: all rows that have changed are sent
  float bound;
  bool by_bits;               // rows have changed if any bit has, such as the sign of a zero
  View<float> max_magnitude;  // (n), magnitudes of changes
  View<std::uint8_t> send;    // (n), 1 or 0
};
void changed_rows(Stream& stream, ChangedRows const& arguments);

// to.row(k) = values.row(rows[k]) less the copy in slot slots[k].
struct GatherChanges {
  MatrixView<float const> values;   // (n, dim)
  View<std::uint32_t const> rows;   // (k)
  View<std::uint32_t const> slots;  // (k)
  Rows<float const> mirrors;        // stride >= dim
  MatrixView<float> to;             // (>= k, dim); only the dim columns are written
};
void gather_changes(Stream& stream, GatherChanges const& arguments);

// The copy in slot slots[i] becomes row i, or grows by it.
struct UpdateMirrors {
  MatrixView<float const> rows;     // (n, dim)
  View<std::uint32_t const> slots;  // (n), distinct
  Rows<float> mirrors;
  bool add;
};
void update_mirrors(Stream& stream, UpdateMirrors const& arguments);

}  // namespace gpups::kernels
