// SPDX-License-Identifier: Apache-2.0
// Copies of the last part of a row, up to a number of bytes that the compiler knows, on the host. Uses masked vectors
// if the machine has them, since calling memcpy() for each row would take longer than the rest of the work on the row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifndef __CUDACC__
#if defined(__AVX512BW__) && defined(__AVX512VL__)
#include <immintrin.h>
#endif

namespace gpups::kernels {

#if defined(__AVX512BW__) && defined(__AVX512VL__)
// The vectors have the size of those in the surrounding loops: a load of bytes that were stored in pieces of other
// sizes waits until the stores are complete.
inline constexpr std::size_t kVectorBytes = 32;

// Returns the mask of the bytes of a vector that come before byte `end`, where the vector begins at byte b.
inline __mmask32 bytes_before(std::size_t end, std::size_t b) {
  std::size_t const left = end > b ? end - b : 0;
  return left >= kVectorBytes ? ~std::uint32_t{0} : (std::uint32_t{1} << left) - 1;
}
#endif

// Fills kBytes at `to` with `bytes` bytes and then zeros. REQUIRES: bytes <= kBytes.
template <std::size_t kBytes>
inline void masked_load(void const* from, void* to, std::size_t bytes) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  static_assert(kBytes == 16 || kBytes % kVectorBytes == 0);
#pragma GCC unroll 16
  for (std::size_t b = 0; b < kBytes; b += kVectorBytes) {
    __m256i const some = _mm256_maskz_loadu_epi8(bytes_before(bytes, b), static_cast<char const*>(from) + b);
    if constexpr (kBytes == 16) {
      _mm_storeu_si128(static_cast<__m128i*>(to), _mm256_castsi256_si128(some));
    } else {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(static_cast<char*>(to) + b), some);
    }
  }
#else
  std::memset(to, 0, kBytes);
  std::memcpy(to, from, bytes);
#endif
}

// Copies `bytes` bytes. REQUIRES: bytes <= kBytes, and kBytes can be read at `from`.
template <std::size_t kBytes>
inline void masked_store(void const* from, void* to, std::size_t bytes) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
#pragma GCC unroll 16
  for (std::size_t b = 0; b < kBytes; b += kVectorBytes) {
    __m256i const all = _mm256_maskz_loadu_epi8(bytes_before(kBytes, b), static_cast<char const*>(from) + b);
    _mm256_mask_storeu_epi8(static_cast<char*>(to) + b, bytes_before(bytes, b), all);
  }
#else
  std::memcpy(to, from, bytes);
#endif
}

}  // namespace gpups::kernels
#endif
