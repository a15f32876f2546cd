// SPDX-License-Identifier: Apache-2.0
#include "trainer/click/digest.hpp"

// g++ 12 takes what its own header says of wide vectors for a mistake.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace gpups::trainer {

std::uint64_t digest_of(std::span<std::byte const> bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace gpups::trainer
#pragma GCC diagnostic pop
