// SPDX-License-Identifier: Apache-2.0
// Where kernels write the row in which something is wrong.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::cache {

// One number that says "no row" (kNoRow). Queued on the stream.
inline Array<std::uint32_t> no_bad_row(Stream& stream) {
  Array<std::uint32_t> bad_row(stream.device(), 1);
  memory::fill_bytes(stream, bad_row.data(), 0xFF, bad_row.bytes());
  return bad_row;
}

}  // namespace gpups::cache
