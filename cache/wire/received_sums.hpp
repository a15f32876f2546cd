// SPDX-License-Identifier: Apache-2.0
// Rows of packed integers (kernels/wire/packed_rows.hpp) from another rank.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/wire/pack_sums.hpp"

namespace gpups::cache {

// `count` rows of `dim` integers, packed. To receive them: check the announced size with is_valid_size(), allocate
// `bytes`, and call wait_index_rows() when the bytes have arrived.
struct ReceivedSums {
  std::size_t count = 0, dim = 0;
  Array<std::uint8_t> bytes{};
  Array<std::uint64_t> starts{};  // start of each block of rows in `bytes`

  // Returns true if packed rows of this shape can have `size` bytes.
  bool is_valid_size(std::uint64_t size) const {
    return size >= kernels::packed_header_bytes(count) && size <= kernels::packed_rows_bytes_max(count, dim);
  }
  kernels::PackedRows rows() const { return {bytes, count, dim}; }
  // Finds the start of each block of rows. Returns false if the bytes are invalid. Waits for `stream`.
  bool wait_index_rows(Stream& stream) {
    starts = Array<std::uint64_t>(stream.device(), kernels::packed_blocks(count) + 1);
    return kernels::wait_find_packed_rows(stream, rows(), starts);
  }
};

// Occurrence counts are sent as packed rows of this many counts, so that a large count widens only its row.
inline constexpr std::size_t kCountsPerRow = 16;
constexpr std::size_t rows_of_counts(std::size_t counts) { return (counts + kCountsPerRow - 1) / kCountsPerRow; }

}  // namespace gpups::cache
