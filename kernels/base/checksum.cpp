// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/checksum.hpp"

// XXH3 is compiled here, with the instruction set of the rest of this library. g++ 12 gives false warnings for its own
// headers of wide vectors.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gpups::kernels {

std::uint64_t checksum(void const* data, std::size_t bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data, bytes, seed);
}

}  // namespace gpups::kernels
#pragma GCC diagnostic pop
