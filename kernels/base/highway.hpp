// SPDX-License-Identifier: Apache-2.0
// Highway, a library of portable vectors, for the instruction set that the file is compiled for: kernels are compiled
// once for each set, so Highway's own dispatch is not used.
#pragma once

#ifndef __CUDACC__

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__) && !(defined(__AVX2__) && defined(__FMA__))
#error "kernels need AVX2 and FMA (sums would be rounded in another way): use GPUPS_HOST_ARCH=portable"
#endif
#define HWY_COMPILE_ONLY_STATIC
#define HWY_IS_DEBUG_BUILD 0    // its checks would need Highway's library
#define HWY_DISABLE_PCLMUL_AES  // not part of x86-64-v3, and not used
// Vectors have a size that the compiler knows. Loops without vectors still become SVE code.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#ifdef __aarch64__  // Highway then has no dispatch, for which it compiles all its functions for processors with AES
#define TOOLCHAIN_MISS_SYS_AUXV_H
#endif
#include <hwy/highway.h>

namespace gpups::kernels {

namespace hn = hwy::HWY_NAMESPACE;

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
