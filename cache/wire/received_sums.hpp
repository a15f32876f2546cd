// SPDX-License-Identifier: Apache-2.0
// Rows of packed integers (kernels/codec/packed_rows.hpp) from another rank.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/codec/pack_sums.hpp"

namespace gpups::cache {

// `count` rows of `dim` integers, packed. To receive them: check the announced size with is_valid_size(); when the
// bytes have arrived, find the starts of their blocks with kernels::find_packed_rows().
struct ReceivedSums {
  std::size_t count = 0, dim = 0;
  View<std::uint8_t const> bytes{};
  View<std::uint64_t> starts{};  // start of each block of rows in `bytes`

  // Returns true if packed rows of this shape can have `size` bytes.
  bool is_valid_size(std::uint64_t size) const {
    return size >= kernels::packed_header_bytes(count) && size <= kernels::packed_rows_bytes_max(count, dim);
  }
  kernels::PackedRows rows() const { return {bytes, count, dim}; }
};

// Occurrence counts are sent as packed rows of this many counts, so that a large count widens only its row.
inline constexpr std::size_t kCountsPerRow = 16;
constexpr std::size_t rows_of_counts(std::size_t counts) { return (counts + kCountsPerRow - 1) / kCountsPerRow; }

// Sections of a body follow each other; each begins at a multiple of 16 bytes, with zeros before it.
constexpr std::size_t after_section(std::size_t at, std::size_t bytes) {
  constexpr std::size_t kAlignment = kernels::kPackedAlignment;
  return (at + bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace gpups::cache
