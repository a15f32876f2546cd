// SPDX-License-Identifier: Apache-2.0
// Copies a column's elements between rows and a dense array. Moves twice the bytes of the array.
#pragma once

#include "gpups/array.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// Copies from rows to an array. T: float, std::uint32_t or std::uint64_t.
template <class T>
struct GatherColumn {
  Rows<T const> rows;
  View<std::uint32_t const> ids;  // (n), numbers of existing rows
  View<T> out;                    // (n * rows.stride)
};
void gather_column(Stream& stream, GatherColumn<float> const& arguments);
void gather_column(Stream& stream, GatherColumn<std::uint32_t> const& arguments);
void gather_column(Stream& stream, GatherColumn<std::uint64_t> const& arguments);

// Copies from an array to rows. T: float or std::uint32_t.
template <class T>
struct ScatterColumn {
  View<T const> from;             // (n * rows.stride)
  View<std::uint32_t const> ids;  // (n), distinct
  Rows<T> rows;
};
void scatter_column(Stream& stream, ScatterColumn<float> const& arguments);
void scatter_column(Stream& stream, ScatterColumn<std::uint32_t> const& arguments);

}  // namespace gpups::kernels
