// SPDX-License-Identifier: Apache-2.0
// Integers in rows that have come from another rank, in as few bytes as hold them (kernels/wire/narrow_rows.hpp).
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/wire/narrow_sums.hpp"

namespace gpups::cache {

struct ReceivedSums {
  std::size_t count = 0, dim = 0;
  Array<std::uint8_t> bytes{};
  Array<std::uint64_t> starts{};  // of some rows among the bytes

  // Whether a header may announce so many bytes of such rows.
  bool may_have(std::uint64_t size) const {
    return size >= kernels::narrow_head(count) && size <= kernels::narrow_bytes_max(count, dim);
  }
  kernels::NarrowRows rows() const { return {bytes, count, dim}; }
  // False where the bytes are no such rows. To be called once they are there. Waits for `stream`.
  bool wait_look(Stream& stream) {
    starts = Array<std::uint64_t>(stream.device(), kernels::narrow_blocks(count) + 1);
    return kernels::wait_find_narrow(stream, rows(), starts);
  }
};

// Counts travel as rows of so many, which are as wide as the largest of them needs.
inline constexpr std::size_t kCountsPerRow = 16;
constexpr std::size_t rows_of_counts(std::size_t counts) { return (counts + kCountsPerRow - 1) / kCountsPerRow; }

}  // namespace gpups::cache
