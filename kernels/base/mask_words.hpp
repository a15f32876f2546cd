// SPDX-License-Identifier: Apache-2.0
// Masks of Highway's vectors as bits of words, on the host.
#pragma once

#ifndef __CUDACC__

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/base/highway.hpp"

namespace gpups::kernels {

// Returns the bits of 64 comparisons. mask(k) returns the mask of the numbers k, k + 1, ..., a vector of D.
template <class D, class F>
[[gnu::always_inline]] inline std::uint64_t mask_word(D d, F mask) {
  constexpr std::size_t kWidth = hn::MaxLanes(D()), kBytes = (kWidth + 7) / 8;
  std::uint64_t word = 0;
#pragma GCC unroll 16
  for (std::size_t k = 0; k < 64; k += kWidth) {
    std::uint8_t bytes[8];  // Highway may write all
    hn::StoreMaskBits(d, mask(k), bytes);
    std::conditional_t<kBytes == 1, std::uint8_t, std::uint16_t> bits;
    std::memcpy(&bits, bytes, kBytes);
    word |= std::uint64_t{bits} << k;
  }
  return word;
}

}  // namespace gpups::kernels
#endif
