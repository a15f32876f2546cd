// SPDX-License-Identifier: Apache-2.0
// Vectors of 16 floats for fast loops on the host. g++ splits them if the machine has narrower registers.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/launch.hpp"
#if defined(__AVX512F__) && !defined(__CUDACC__)
#include <immintrin.h>
#endif

namespace gpups::kernels {

// Load and store a float or, on the host, a vector, at any address of a float.
#ifdef __CUDACC__
template <class T>
__device__ T load(float const* from) {
  return *from;  // nvcc makes four loads of a byte each of a memcpy()
}
template <class T>
__device__ void store(float* to, T value) {
  *to = value;
}
#else
template <class T>
inline T load(float const* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof(T));
  return value;
}
template <class T>
inline void store(float* to, T value) {
  __builtin_memcpy(to, &value, sizeof(T));
}
#endif
GPUPS_FN inline float square_root(float x) { return sqrtf(x); }

// bits_of() and from_bits() convert between floats and their bits, for one float or each lane of a vector.
GPUPS_FN inline std::uint32_t bits_of(float x) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
template <class T, class Bits>
GPUPS_FN inline T from_bits(Bits bits) {
  T x;
  static_assert(sizeof bits == sizeof x);
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

#ifndef __CUDACC__

inline constexpr std::size_t kVector = 16;
using Vector = float __attribute__((vector_size(64)));
using VectorIndex = int __attribute__((vector_size(64)));
using VectorBits = std::uint32_t __attribute__((vector_size(64)));

inline VectorBits bits_of(Vector x) { return reinterpret_cast<VectorBits>(x); }

inline Vector square_root(Vector x) {
#ifdef __AVX512F__  // g++ would compute each lane separately
  return reinterpret_cast<Vector>(_mm512_maskz_sqrt_ps(0xFFFF, reinterpret_cast<__m512>(x)));
#endif
  for (std::size_t k = 0; k < kVector; ++k) x[k] = __builtin_sqrtf(x[k]);
  return x;
}

// Lane l of the result is lane mask[l] of the 32 lanes of a and b.
inline Vector shuffle(Vector a, Vector b, VectorIndex mask) {
#ifdef __clang__  // clang has no shuffle with a variable mask
  Vector shuffled;
  for (int l = 0; l < 16; ++l) shuffled[l] = mask[l] < 16 ? a[mask[l]] : b[mask[l] - 16];
  return shuffled;
#else
  return __builtin_shuffle(a, b, mask);
#endif
}

// first_blocks() returns, for each pair of adjacent blocks of D lanes, the first block of a and the first block of b;
// second_blocks() returns the second ones.
template <int D>
inline Vector first_blocks(Vector a, Vector b) {
  VectorIndex mask;
  for (int l = 0; l < 16; ++l) mask[l] = ((l & D) != 0 ? 16 : 0) | (l & ~D);
  return shuffle(a, b, mask);
}
template <int D>
inline Vector second_blocks(Vector a, Vector b) {
  VectorIndex mask;
  for (int l = 0; l < 16; ++l) mask[l] = ((l & D) != 0 ? 16 : 0) | l | D;
  return shuffle(a, b, mask);
}

// Lane l of the result is the sum of the lanes of v[l], added in the same tree as in HostLanes::sum().
inline Vector sums_of(Vector const* v) {
  Vector a[8], b[4], c[2];
  for (int i = 0; i < 8; ++i) a[i] = first_blocks<8>(v[i], v[i + 8]) + second_blocks<8>(v[i], v[i + 8]);
  for (int i = 0; i < 4; ++i) b[i] = first_blocks<4>(a[i], a[i + 4]) + second_blocks<4>(a[i], a[i + 4]);
  for (int i = 0; i < 2; ++i) c[i] = first_blocks<2>(b[i], b[i + 2]) + second_blocks<2>(b[i], b[i + 2]);
  return first_blocks<1>(c[0], c[1]) + second_blocks<1>(c[0], c[1]);
}

// Transposes 2 x 2 blocks of D x D elements.
template <int D>
inline void transpose_blocks(Vector* v) {
  for (int i = 0; i < 16; ++i) {
    if ((i & D) != 0) continue;
    Vector const a = v[i], b = v[i + D];
    v[i] = first_blocks<D>(a, b);
    v[i + D] = second_blocks<D>(a, b);
  }
}
// Transposes a 16 x 16 matrix.
inline void transpose(Vector* v) {
  transpose_blocks<8>(v);
  transpose_blocks<4>(v);
  transpose_blocks<2>(v);
  transpose_blocks<1>(v);
}

// Calls f(k) for vectors that begin at k = 0, 16, ... and cover n numbers; the last vector overlaps the one before it
// if n is not a multiple of 16. REQUIRES: n >= 16, and f writes the same numbers when it is called for them again.
template <class F>
inline void each_vector(std::size_t n, F f) {
  for (std::size_t k = 0; k + kVector <= n; k += kVector) f(k);
  if (n % kVector != 0) f(n - kVector);
}

// Returns x with the first lanes set to 0.
inline Vector without_first(std::size_t lanes, Vector x) {
  constexpr VectorIndex kLane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return kLane >= static_cast<int>(lanes) ? x : Vector{};
}

// Returns the sum of f(k) over the vectors of each_vector(); each number counts once.
template <class F>
inline float sum_vectors(std::size_t n, F f) {
  Vector sum = {};
  std::size_t k = 0;
  for (; k + kVector <= n; k += kVector) sum += f(k);
  if (k < n) sum += without_first(kVector - n % kVector, f(n - kVector));
  return HostLanes{}.sum(kVector, [&](std::size_t lane) { return sum[lane]; });
}

#endif

// Calls f(k) for the numbers of a row, T at a time: floats spread over the lanes, or vectors on one host thread. f may
// be called again for the same numbers, as in each_vector(). REQUIRES: n >= 16 if T is a vector.
template <class T, class Lanes, class F>
GPUPS_FN inline void each_number(Lanes lanes, std::size_t n, F f) {
  if constexpr (std::is_same_v<T, float>) {
    lanes.each(n, f);
  } else {
    each_vector(n, f);
  }
}
// Returns the sum of f(k) over the numbers of a row.
template <class T, class Lanes, class F>
GPUPS_FN inline float sum_numbers(Lanes lanes, std::size_t n, F f) {
  if constexpr (std::is_same_v<T, float>) {
    return lanes.sum(n, f);
  } else {
    return sum_vectors(n, f);
  }
}

}  // namespace gpups::kernels
