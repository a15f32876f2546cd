// SPDX-License-Identifier: Apache-2.0
// Exact sums in the format of packed_rows.hpp: packs rows, and adds packed rows to others, for any number of tables and
// ranks in the launches of one. Packing reads 8 bytes per number, twice, on the host from a cache the second time.
// Adding reads and writes 8 bytes per number, and reads the packed bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/codec/packed_rows.hpp"

namespace gpups::kernels {

// Selects the rows to pack.
struct PackSums {
  MatrixView<std::int64_t const> sums;  // (rows, dim)
  View<std::uint32_t const> order;      // (n): row i of the packed rows is sums.row(order[i])
};
// The packed rows of part p are size[p] bytes of `memory` from first[p] on. Parts follow each other; each begins at a
// multiple of kPackedAlignment, with zeros before it. So the parts p .. q - 1 are also one message. `memory` has room
// for the longest result, packed_rows_bytes_max() for each part.
inline constexpr std::size_t kPackedAlignment = 16;
struct PackedParts {
  Array<std::uint8_t> memory;
  Array<std::uint64_t> places;     // on the device of the sums: `first`, then `size`
  std::vector<std::size_t> first;  // (parts + 1); last: the end of the bytes in use
  std::vector<std::size_t> size;   // (parts)

  // Sets `first` and `size`. read: the contents of `places`.
  void set_places(std::span<std::uint64_t const> read);
};
// Packs the rows of many parts. Queued on `stream`: the caller reads `places`, and calls set_places().
PackedParts pack_sums(Stream& stream, std::span<PackSums const> parts);

// The packed rows of one part: the first `size` bytes of `memory`.
struct PackedBytes {
  Array<std::uint8_t> memory;
  std::size_t size = 0;
};
// Blocks until `stream` is done.
PackedBytes wait_pack_sums(Stream& stream, PackSums const& part);

// Received rows, and memory for the offsets of the numbers of rows 0, 32, 64 ... behind the widths, and at the end
// their total size: (packed_blocks(rows) + 1).
struct PackedRowStarts {
  PackedRows rows;
  View<std::uint64_t> starts;
};
// Writes `starts` of all parts. wrong: (1); set to the number of the first part whose bytes do not have the right size,
// or to kNoRow. Rows of this part must not be read, nor those of later parts. Queued on `stream`.
void find_packed_rows(Stream& stream, std::span<PackedRowStarts const> parts, View<std::uint32_t> wrong);
// The same for one part. Returns whether the size of its bytes is right. Blocks until `stream` is done.
bool wait_find_packed_rows(Stream& stream, PackedRows const& rows, View<std::uint64_t> starts);

// target(slots[i]) += row i of the packed rows.
struct AddPackedSums {
  PackedRows rows;
  View<std::uint64_t const> starts;  // from wait_find_packed_rows()
  View<std::uint32_t const> slots;   // (rows), distinct; empty: row i is added to row i
  MatrixView<std::int64_t> into;     // (.., dim)
  // (1), kNoRow before the call. The call sets it to the smallest slot with a sum outside int64.
  View<std::uint32_t> bad_row;
  MatrixView<std::int64_t> more{};  // the targets from into.rows() on

  GPUPS_FN std::int64_t* target(std::uint32_t slot) const {
    bool const first = slot < into.rows();  // without a branch
    return (first ? into.data() : more.data()) + (slot - (first ? 0 : into.rows())) * (first ? into : more).stride();
  }
};
// REQUIRES: no two parts add to the same row; for such parts see merge_gradients.hpp.
void add_packed_sums(Stream& stream, std::span<AddPackedSums const> parts);
inline void add_packed_sums(Stream& stream, AddPackedSums const& part) { add_packed_sums(stream, {&part, 1}); }

// The memory of PackedParts: its size in whole steps of kPackedAlignment.

// Returns the first multiple of kPackedAlignment that is not below `bytes`.
GPUPS_ANY_FN constexpr std::size_t packed_aligned(std::size_t bytes) {
  return (bytes + kPackedAlignment - 1) / kPackedAlignment * kPackedAlignment;
}

// Returns a result with memory for any widths, whose sizes are not known yet.
inline PackedParts packed_memory(std::span<PackSums const> parts) {
  std::size_t most = 0;
  for (auto const& part : parts) most += packed_aligned(packed_rows_bytes_max(part.order.size(), part.sums.columns()));
  Device const device = parts.front().sums.device();
  return {.memory = Array<std::uint8_t>(device, most),
          .places = Array<std::uint64_t>(device, 2 * parts.size() + 1),
          .first = {},
          .size = {}};
}

}  // namespace gpups::kernels
