// SPDX-License-Identifier: Apache-2.0
// Copies rows by number: between tables and matrices, between tables and contiguous numbers of any data type, and
// within matrices. At the speed of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "kernels/rows/number_type.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// Copies rows by number: out.row(i) = rows(ids[i]), for many tables in one launch. Moves 8 * dim + 4 bytes per row.
struct Gather {
  Rows<float const> rows;         // chunks of (rows, stride)
  View<std::uint32_t const> ids;  // (n), numbers of existing rows; kNoRow: the row of `out` does not change
  MatrixView<float> out;          // (>= n, dim); its padding is copied too; its stride is at most that of `rows`
};
void gather(Stream& stream, std::span<Gather const> parts);
inline void gather(Stream& stream, Gather const& part) { gather(stream, {&part, 1}); }

// Copies rows of any data type between tables and contiguous memory, without conversion, for many tables in one launch.
// Moves the bytes of the rows twice, and 4 bytes per row.

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

// Writes rows by number: rows(ids[i]) = from.row(i), rounded to the nearest numbers of the rows' data type; padding is
// set to zero. Moves 8 * dim + 4 bytes per row, or 6 * dim + 4 for numbers of 16 bits.
struct Scatter {
  MatrixView<float const> from;   // (>= n, >= dim)
  View<std::uint32_t const> ids;  // (n), distinct numbers of existing rows, or kNoRow: nothing is written
  WritableRows rows;              // stride >= dim
  std::size_t dim;
};
void scatter(Stream& stream, Scatter const& arguments);

// Copies rows of a matrix from or to given positions. Moves 8 * dim + 4 bytes per row.

// to.row(i) = from.row(positions[i]); if `flags_from` is not empty, also flags_to[i] = flags_from[positions[i]].
struct GatherMatrixRows {
  MatrixView<float const> from;
  View<std::uint32_t const> positions;       // (n)
  MatrixView<float> to;                      // (>= n, dim); only the dim columns are written
  View<std::uint8_t const> flags_from = {};  // one per row of `from`, or empty
  View<std::uint8_t> flags_to = {};          // (n), or empty
};
void gather_matrix_rows(Stream& stream, GatherMatrixRows const& arguments);

// to.row(positions[i]) = from.row(i); padding is set to zero.
struct ScatterMatrixRows {
  MatrixView<float const> from;         // (n, dim)
  View<std::uint32_t const> positions;  // (n), distinct
  MatrixView<float> to;
};
void scatter_matrix_rows(Stream& stream, ScatterMatrixRows const& arguments);

}  // namespace gpups::kernels
