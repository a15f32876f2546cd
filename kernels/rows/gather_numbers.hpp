// SPDX-License-Identifier: Apache-2.0
// Copies rows of any data type between tables and contiguous memory, without conversion, for many tables in one launch.
// Moves the bytes of the rows twice, and 4 bytes per row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/rows/number_matrix.hpp"

namespace gpups::kernels {

// out row i = row ids[i] of the table, without its padding.
struct GatherNumbers {
  TypedRows rows;                 // stride row_stride(dim, type)
  View<std::uint32_t const> ids;  // (n), numbers of existing rows; kNoRow: the row of `out` does not change
  NumberView out;                 // (n, dim), of the same type
};
void gather_numbers(Stream& stream, std::span<GatherNumbers const> parts);
inline void gather_numbers(Stream& stream, GatherNumbers const& part) { gather_numbers(stream, {&part, 1}); }

// Row ids[i] of the table = row i of `from`. Padding is set to zero.
struct ScatterNumbers {
  NumberView from;                // (n, dim)
  View<std::uint32_t const> ids;  // (n), distinct numbers of existing rows; kNoRow: the row of `from` is not used
  WritableRows rows;              // of the same type; stride row_stride(dim, type)
};
// REQUIRES: no two parts write the same row.
void scatter_numbers(Stream& stream, std::span<ScatterNumbers const> parts);
inline void scatter_numbers(Stream& stream, ScatterNumbers const& part) { scatter_numbers(stream, {&part, 1}); }

}  // namespace gpups::kernels
