// SPDX-License-Identifier: Apache-2.0
// Copies rows by number: out.row(i) = rows(ids[i]), for many tables in one launch. Moves 8 * dim + 4 bytes per row.
#pragma once

#include <span>

#include "gpups/array.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

struct Gather {
  Rows<float const> rows;         // chunks of (rows, stride)
  View<std::uint32_t const> ids;  // (n), numbers of existing rows; kNoRow: the row of `out` does not change
  MatrixView<float> out;          // (>= n, dim); its padding is copied too; its stride is at most that of `rows`
};
void gather(Stream& stream, std::span<Gather const> parts);
inline void gather(Stream& stream, Gather const& part) { gather(stream, {&part, 1}); }

}  // namespace gpups::kernels
