// SPDX-License-Identifier: Apache-2.0
// Exact sums in the format of packed_rows.hpp: packs rows, and adds packed rows to others. Packing reads 8 bytes per
// number, twice, on the host from a cache the second time. Adding reads and writes 8 bytes per number, and reads the
// packed bytes.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/wire/packed_rows.hpp"

namespace gpups::kernels {

// Selects the rows to pack.
struct PackSums {
  MatrixView<std::int64_t const> sums;  // (rows, dim)
  View<std::uint32_t const> order;      // (n): row i of the packed rows is sums.row(order[i])
};
// The first `size` bytes of `memory` are the rows; on a GPU, all bytes.
struct PackedBytes {
  Array<std::uint8_t> memory;
  std::size_t size = 0;
};
// Packs rows. Blocks until `stream` is done.
PackedBytes wait_pack_sums(Stream& stream, PackSums const& arguments);

// Writes the offsets of the numbers of rows 0, 32, 64 ... behind the widths, and at the end their total size. starts:
// (packed_blocks(rows) + 1). Returns false if the size of `rows.bytes` does not match; such rows must not be read.
// Blocks until `stream` is done.
bool wait_find_packed_rows(Stream& stream, PackedRows const& rows, View<std::uint64_t> starts);

// into.row(slots[i]) += row i of the packed rows.
struct AddPackedSums {
  PackedRows rows;
  View<std::uint64_t const> starts;  // from wait_find_packed_rows()
  View<std::uint32_t const> slots;   // (rows), distinct; empty: row i is added to row i
  MatrixView<std::int64_t> into;     // (.., dim)
  // (1), kNoRow before the call. The call sets it to the smallest slot with a sum outside int64.
  View<std::uint32_t> bad_row;
};
void add_packed_sums(Stream& stream, AddPackedSums const& arguments);

}  // namespace gpups::kernels
