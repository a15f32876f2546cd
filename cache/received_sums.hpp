// SPDX-License-Identifier: Apache-2.0
// Integers in rows that have come from another rank, in as few bytes as hold them (kernels/wire/packed_rows.hpp).
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/wire/pack_sums.hpp"

namespace gpups::cache {

struct ReceivedSums {
  std::size_t count = 0, dim = 0;
  Array<std::uint8_t> bytes{};
  Array<std::uint64_t> starts{};  // of some rows among the bytes

  // Whether a header may announce so many bytes of such rows.
  bool is_valid_size(std::uint64_t size) const {
    return size >= kernels::packed_header_bytes(count) && size <= kernels::packed_rows_bytes_max(count, dim);
  }
  kernels::PackedRows rows() const { return {bytes, count, dim}; }
  // False where the bytes are no such rows. To be called once they are there. Waits for `stream`.
  bool wait_index_rows(Stream& stream) {
    starts = Array<std::uint64_t>(stream.device(), kernels::packed_blocks(count) + 1);
    return kernels::wait_find_packed_rows(stream, rows(), starts);
  }
};

// Counts travel as rows of so many, which are as wide as the largest of them needs.
inline constexpr std::size_t kCountsPerRow = 16;
constexpr std::size_t rows_of_counts(std::size_t counts) { return (counts + kCountsPerRow - 1) / kCountsPerRow; }

}  // namespace gpups::cache
