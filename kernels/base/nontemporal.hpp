// SPDX-License-Identifier: Apache-2.0
// Nontemporal stores, which bypass the caches of the host, and prefetches of whole rows.
//
// The next reader of a result of nontemporal stores reads it from memory. So they are for results that the caches would
// have dropped anyway; the result of a small batch should stay in cache, where the model reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace gpups::kernels {

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kLineFloats = kLineBytes / sizeof(float);

// Returns whether rows of `row_bytes` bytes, the first of which is at `first`, consist of whole cache lines.
inline bool are_lines(void const* first, std::size_t row_bytes) {
  return reinterpret_cast<std::uintptr_t>(first) % kLineBytes == 0 && row_bytes % kLineBytes == 0;
}

#ifndef __CUDACC__
// Writes a cache line with a nontemporal store. REQUIRES: `to` is the beginning of a line; the same thread calls
// nontemporal_fence() before other threads read the line.
inline void store_line_nontemporal(float* to, float const* from) {
#if defined(__AVX512F__)
  _mm512_stream_ps(to, _mm512_loadu_ps(from));
#elif defined(__AVX__)
  for (std::size_t j = 0; j < kLineFloats; j += 8) _mm256_stream_ps(to + j, _mm256_loadu_ps(from + j));
#elif defined(__SSE__)
  for (std::size_t j = 0; j < kLineFloats; j += 4) _mm_stream_ps(to + j, _mm_loadu_ps(from + j));
#else
  std::memcpy(to, from, kLineBytes);
#endif
}

// The same for any number of bytes at any address. Parts of lines are written by ordinary stores.
inline void store_nontemporal(std::uint8_t* to, std::uint8_t const* from, std::size_t bytes) {
  std::size_t const before = (kLineBytes - reinterpret_cast<std::uintptr_t>(to) % kLineBytes) % kLineBytes;
  std::size_t const first = before < bytes ? before : bytes;
  std::memcpy(to, from, first);
  std::size_t at = first;
  for (; at + kLineBytes <= bytes; at += kLineBytes) {
    float line[kLineFloats];
    std::memcpy(line, from + at, kLineBytes);
    store_line_nontemporal(reinterpret_cast<float*>(to + at), line);
  }
  std::memcpy(to + at, from + at, bytes - at);
}

// Makes all nontemporal stores of this thread visible to other threads.
inline void nontemporal_fence() {
#ifdef __SSE__
  _mm_sfence();
#endif
}

// The cache that a row is prefetched into, or kToWrite: the first-level cache, for a row that will be written. The
// second-level cache can have more lines in flight than the first-level cache, so rows that are all in memory are
// prefetched into it.
enum class PrefetchTarget { kToL1, kToL2, kToWrite };

// Prefetches a row. Always inlined, because g++ drops calls of a function that only prefetches.
template <PrefetchTarget kAhead>
[[gnu::always_inline]] inline void prefetch_row(void const* from, std::size_t bytes) {
  for (std::size_t b = 0; b < bytes; b += kLineBytes) {
    char const* const line = static_cast<char const*>(from) + b;
    if constexpr (kAhead == PrefetchTarget::kToL1) __builtin_prefetch(line, 0, 3);
    if constexpr (kAhead == PrefetchTarget::kToL2) __builtin_prefetch(line, 0, 2);
    if constexpr (kAhead == PrefetchTarget::kToWrite) __builtin_prefetch(line, 1, 3);
  }
}
#endif

}  // namespace gpups::kernels
