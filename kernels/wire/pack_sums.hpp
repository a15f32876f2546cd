// SPDX-License-Identifier: Apache-2.0
// Exact sums in the format of packed_rows.hpp: writing rows, and adding them to others. Writing reads 8 bytes per
// number, twice, but from a cache the second time where the host does it; adding reads and writes 8, and the bytes.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/wire/packed_rows.hpp"

namespace gpups::kernels {

struct PackSums {
  MatrixView<std::int64_t const> sums;  // (rows, dim)
  View<std::uint32_t const> order;      // (n): row i that is written is sums.row(order[i])
};
// The first `size` bytes of `memory` are the rows; on a GPU, all.
struct PackedBytes {
  Array<std::uint8_t> memory;
  std::size_t size = 0;
};
// Waits for `stream`.
PackedBytes wait_pack_sums(Stream& stream, PackSums const& arguments);

// Writes where the numbers of rows 0, 32, 64 ... lie, and the end; behind the widths. starts: (packed_blocks(rows) +
// 1). False where the bytes are no such rows; they must not be read then. Waits for `stream`.
bool wait_find_packed_rows(Stream& stream, PackedRows const& rows, View<std::uint64_t> starts);

// into.row(slots[i]) += row i.
struct AddPackedSums {
  PackedRows rows;
  View<std::uint64_t const> starts;  // as wait_find_packed_rows() has left them
  View<std::uint32_t const> slots;   // (rows), distinct; empty: row i goes to row i
  MatrixView<std::int64_t> into;     // (.., dim)
  View<std::uint32_t> bad_row;       // (1), kNoRow before; after it the smallest slot whose sum is outside int64
};
void add_packed_sums(Stream& stream, AddPackedSums const& arguments);

}  // namespace gpups::kernels
