// SPDX-License-Identifier: Apache-2.0
// Exact sums in the format of narrow_rows.hpp: writing rows, and adding them to others. Writing reads 8 bytes per
// number, twice, but from a cache the second time where the host does it; adding reads and writes 8, and the bytes.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/wire/narrow_rows.hpp"

namespace gpups::kernels {

struct NarrowSums {
  MatrixView<std::int64_t const> sums;  // (rows, dim)
  View<std::uint32_t const> order;      // (n): row i that is written is sums.row(order[i])
};
// The first `size` bytes of `memory` are the rows; on a GPU, all.
struct NarrowBytes {
  Array<std::uint8_t> memory;
  std::size_t size = 0;
};
// Waits for `stream`.
NarrowBytes wait_narrow_sums(Stream& stream, NarrowSums const& arguments);

// Writes where the numbers of rows 0, 32, 64 ... lie, and the end; behind the widths. starts: (narrow_blocks(rows) +
// 1). False where the bytes are no such rows; they must not be read then. Waits for `stream`.
bool wait_find_narrow(Stream& stream, NarrowRows const& rows, View<std::uint64_t> starts);

// into.row(slots[i]) += row i.
struct AddNarrowSums {
  NarrowRows rows;
  View<std::uint64_t const> starts;  // as wait_find_narrow() has left them
  View<std::uint32_t const> slots;   // (rows), distinct; empty: row i goes to row i
  MatrixView<std::int64_t> into;     // (.., dim)
  View<std::uint32_t> fault;         // (1), kNoRow before; after it the smallest slot whose sum is outside int64
};
void add_narrow_sums(Stream& stream, AddNarrowSums const& arguments);

}  // namespace gpups::kernels
