// SPDX-License-Identifier: Apache-2.0
// Copies rows by number: out.row(i) = rows(ids[i]). Moves 8 * dim + 4 bytes per row.
#pragma once

#include "gpups/array.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

struct Gather {
  Rows<float const> rows;         // chunks of (kChunkRows, stride)
  View<std::uint32_t const> ids;  // (n), numbers of existing rows
  MatrixView<float> out;          // (>= n, dim), same stride; padding is copied too
};
void gather(Stream& stream, Gather const& arguments);

// The same for look-ups: row i of `out` is left as it is where ids[i] is kNoRow.
struct GatherFound {
  Rows<float const> rows;
  View<std::uint32_t const> ids;  // (n)
  MatrixView<float> out;          // (>= n, dim), same stride
};
void gather_found(Stream& stream, GatherFound const& arguments);

}  // namespace gpups::kernels
