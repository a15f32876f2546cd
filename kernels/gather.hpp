// SPDX-License-Identifier: Apache-2.0
// Copies rows by number: out.row(i) = rows(ids[i]). Moves 8 * dim + 4 bytes per row.
#pragma once

#include "gpups/array.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

struct Gather {
  Rows<float const> rows;         // chunks of (kChunkRows, stride)
  View<std::uint32_t const> ids;  // (n), numbers of existing rows; where kNoRow, a row of `out` is left as it is
  MatrixView<float> out;          // (>= n, dim); padding is copied too, as far as its stride, which is at most theirs
};
void gather(Stream& stream, Gather const& arguments);

}  // namespace gpups::kernels
