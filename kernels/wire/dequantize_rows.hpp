// SPDX-License-Identifier: Apache-2.0
// Rows from the wire as floats, or as whole units of a grid; into rows of their own, or added to others. Reads the
// codes and writes 4 or 8 bytes per element; adding reads as many. Padding stays as it was.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/wire/format.hpp"

namespace gpups::kernels {

// out.row(i) = row i of the wire. The products of codes and scales are exact.
struct DequantizeRows {
  WireRowsIn wire;        // n rows
  MatrixView<float> out;  // (>= n, dim)
};
void dequantize_rows(Stream& stream, DequantizeRows const& arguments);

// into.row(slots[i]) += row i of the wire, by one float addition for each element.
struct AddDequantized {
  WireRowsIn wire;
  View<std::uint32_t const> slots;  // (n), distinct; empty: row i goes to row i
  MatrixView<float> into;           // (rows, dim)
};
void add_dequantized(Stream& stream, AddDequantized const& arguments);

// into.row(slots[i]) += row i of the wire in units of 2^grid_log2, wrapping: what quantize_sums() took off.
struct AddDequantizedSums {
  WireRowsIn wire;
  View<std::uint32_t const> slots;  // (n), distinct; empty: row i goes to row i
  MatrixView<std::int64_t> into;    // (rows, dim)
  int grid_log2;                    // that of the sums
};
void add_dequantized_sums(Stream& stream, AddDequantizedSums const& arguments);

}  // namespace gpups::kernels
