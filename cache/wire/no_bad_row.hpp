// SPDX-License-Identifier: Apache-2.0
// The array to which kernels write the number of a bad row.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::cache {

// Returns an array of one element, kNoRow. Queued on `stream`.
inline Array<std::uint32_t> no_bad_row(Stream& stream) {
  Array<std::uint32_t> bad_row(stream.device(), 1);
  memory::fill_bytes(stream, bad_row.data(), 0xFF, bad_row.bytes());
  return bad_row;
}

}  // namespace gpups::cache
