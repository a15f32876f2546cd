// SPDX-License-Identifier: Apache-2.0
// Several blocks of philox() side by side, with the same key, in a form that becomes vector code on the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/launch.hpp"
#include "kernels/philox.hpp"

namespace gpups::kernels {

// word[.][b] are the four words of block b: its counter before run(), the random words after it.
template <std::size_t kBlocks>
struct PhiloxBlocks {
  std::uint32_t word[4][kBlocks];

  GPUPS_FN void run(PhiloxKey key) {
    std::uint32_t k0 = key.word[0], k1 = key.word[1];
    for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9U, k1 += 0xBB67AE85U) {
      for (std::size_t b = 0; b < kBlocks; ++b) {
        std::uint64_t const left = std::uint64_t{0xD2511F53U} * word[0][b];
        std::uint64_t const right = std::uint64_t{0xCD9E8D57U} * word[2][b];
        word[0][b] = static_cast<std::uint32_t>(right >> 32) ^ word[1][b] ^ k0;
        word[1][b] = static_cast<std::uint32_t>(right);
        word[2][b] = static_cast<std::uint32_t>(left >> 32) ^ word[3][b] ^ k1;
        word[3][b] = static_cast<std::uint32_t>(left);
      }
    }
  }
};

}  // namespace gpups::kernels
