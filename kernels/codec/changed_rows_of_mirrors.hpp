// SPDX-License-Identifier: Apache-2.0
// Selects rows that have changed enough since they were last sent to the readers that have mirrors of them, and updates
// mirrors. Reads 8 bytes per element.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/codec/accumulate_residual.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// The change of row i is values.row(i) minus the mirror in slot slots[i]. A changed row is to be sent if the largest
// magnitude of its change is at least the bound, or if the change may be `age` steps old. The age of a change is
// counted from the step after the last one that compared the row and found it unchanged, even if steps in between did
// not use the row. A row that was never compared counts as older than any `age`. A row that this step has already
// compared is not to be sent again.
struct ChangedRows {
  MatrixView<float const> values;   // (n, dim)
  View<std::uint32_t const> slots;  // (n), distinct
  Rows<float const> mirrors;        // stride >= dim
  Rows<std::uint32_t> marks;        // as in AccumulateResidual
  std::uint32_t now;                // this step
  std::uint32_t age;                // 0: all changed rows are sent
  float bound;
  bool by_bits;               // rows count as changed if any bit has changed, for instance the sign of a zero
  View<float> max_magnitude;  // (n), of the changes
  View<std::uint8_t> send;    // (n), 1 or 0
};
void changed_rows(Stream& stream, ChangedRows const& arguments);

// to.row(k) = values.row(rows[k]) minus the mirror in slot slots[k].
struct GatherChanges {
  MatrixView<float const> values;   // (n, dim)
  View<std::uint32_t const> rows;   // (k)
  View<std::uint32_t const> slots;  // (k)
  Rows<float const> mirrors;        // stride >= dim
  MatrixView<float> to;             // (>= k, dim); only the dim columns are written
};
void gather_changes(Stream& stream, GatherChanges const& arguments);

// Sets the mirror in slot slots[i] to row i, or adds row i to it.
struct UpdateMirrors {
  MatrixView<float const> rows;     // (n, dim)
  View<std::uint32_t const> slots;  // (n), distinct
  Rows<float> mirrors;
  bool add;
};
void update_mirrors(Stream& stream, UpdateMirrors const& arguments);

}  // namespace gpups::kernels
