// SPDX-License-Identifier: Apache-2.0
// Stores that go around the host's caches, and prefetches of whole rows.
//
// What is streamed is read from memory by whoever needs it next. So streaming is for results that the caches would
// have dropped anyway; a small batch should stay where the model will look for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/arena.hpp"

#if defined(__x86_64__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace gpups::kernels {

inline constexpr std::size_t kLineBytes = 64;
inline constexpr std::size_t kLineFloats = kLineBytes / sizeof(float);

// Whether rows of so many bytes, the first of them here, are made of whole lines.
inline bool are_lines(void const* first, std::size_t row_bytes) {
  return reinterpret_cast<std::uintptr_t>(first) % kLineBytes == 0 && row_bytes % kLineBytes == 0;
}

// Whether a result of so many bytes is too large for caches to keep what the arena's threads write.
bool exceeds_caches(Arena const& arena, std::size_t bytes);

#ifndef __CUDACC__
// Writes a line around the caches. REQUIRES: `to` begins a line; nontemporal_fence() by the same thread, before others
// read.
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

// The same for any number of bytes, to any place: parts of lines are written as usual.
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

inline void nontemporal_fence() {
#ifdef __SSE__
  _mm_sfence();
#endif
}

// Where a prefetched row goes. Few lines can be on their way to the first level, and more to the second: that is for
// rows that come from memory, all of them.
enum class PrefetchTarget { kToL1, kToL2, kToWrite };

// Always inlined: g++ drops calls of a function that only prefetches.
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
