// SPDX-License-Identifier: Apache-2.0
// Vectors of floats for fast loops on the host, as wide as a register. Sums over lanes have kLanes partial sums on
// every machine, in one vector or in several, so results do not depend on the width.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/base/function.hpp"
#include "kernels/base/highway.hpp"
#include "kernels/base/lanes.hpp"

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
// Returns a * b + c, rounded once. The compiler does not fuse products with sums by itself, since its choice depends on
// the code around them.
GPUPS_FN inline float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }

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

// The number of floats of a vector.
inline constexpr std::size_t kVector = HWY_LANES(float);
static_assert(kVector <= kLanes);
using Vector = float __attribute__((vector_size(kVector * sizeof(float))));
using VectorIndex = int __attribute__((vector_size(kVector * sizeof(int))));
using VectorBits = std::uint32_t __attribute__((vector_size(kVector * sizeof(std::uint32_t))));

// The number of accumulators that loops use at a time: as many independent sums hide the latency of an addition, and
// they leave registers for terms.
inline constexpr std::size_t kAccumulators = kVector == 4 ? 16 : 8;

inline VectorBits bits_of(Vector x) { return reinterpret_cast<VectorBits>(x); }

// Returns a compiler's vector of floats as one of Highway, and the other way round.
template <class V>
inline auto to_highway(V x) {
  return std::bit_cast<hn::Vec<hn::CappedTag<float, sizeof(V) / sizeof(float)>>>(x);
}
template <class V>
requires(sizeof(V) > sizeof(float)) inline V square_root(V x) { return std::bit_cast<V>(hn::Sqrt(to_highway(x))); }
// Each argument is a vector or a number, which stands for a vector of equal numbers.
template <class A, class B, class C>
requires(sizeof(A) + sizeof(B) + sizeof(C) > 3 * sizeof(float)) inline auto multiply_add(A a, B b, C c) {
  using V = decltype(a * b + c);
  hn::CappedTag<float, sizeof(V) / sizeof(float)> const d;
  auto const all = [d](auto x) {
    if constexpr (sizeof x == sizeof(float))
      return hn::Set(d, x);
    else
      return to_highway(x);
  };
  return std::bit_cast<V>(hn::MulAdd(all(a), all(b), all(c)));
}

// Lane l of the result is lane mask[l] of the lanes of a, followed by those of b.
inline Vector shuffle(Vector a, Vector b, VectorIndex mask) {
#ifdef __clang__  // clang has no shuffle with a variable mask
  constexpr int kWidth = static_cast<int>(kVector);
  Vector shuffled;
  for (int l = 0; l < kWidth; ++l) shuffled[l] = mask[l] < kWidth ? a[mask[l]] : b[mask[l] - kWidth];
  return shuffled;
#else
  return __builtin_shuffle(a, b, mask);
#endif
}

// first_blocks() returns, for each pair of adjacent blocks of D lanes, the first block of a and the first block of b;
// second_blocks() returns the second ones.
template <std::size_t D>
inline Vector first_blocks(Vector a, Vector b) {
  VectorIndex mask;
  for (std::size_t l = 0; l < kVector; ++l) mask[l] = static_cast<int>(((l & D) != 0 ? kVector : 0) | (l & ~D));
  return shuffle(a, b, mask);
}
template <std::size_t D>
inline Vector second_blocks(Vector a, Vector b) {
  VectorIndex mask;
  for (std::size_t l = 0; l < kVector; ++l) mask[l] = static_cast<int>(((l & D) != 0 ? kVector : 0) | l | D);
  return shuffle(a, b, mask);
}

// kLanes partial sums.
struct Partials {
  static constexpr std::size_t kVectors = kLanes / kVector;
  Vector of[kVectors];

  // Adds partial sums in pairs of equal distance, as HostLanes::sum() does, until there is one vector of them.
  Vector fold() const {
    Vector sum[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) sum[v] = of[v];
    for (std::size_t half = kVectors / 2; half > 0; half /= 2) {
      for (std::size_t v = 0; v < half; ++v) sum[v] += sum[v + half];
    }
    return sum[0];
  }
  // Returns the sum of all.
  float total() const {
    Vector sum = fold();
    for (std::size_t half = kVector / 2; half > 0; half /= 2) {
      for (std::size_t k = 0; k < half; ++k) sum[k] += sum[k + half];
    }
    return sum[0];
  }
};

// Adds up the lanes of kVector vectors, which the call may overwrite, in the same tree: lane l of the result is the sum
// of the lanes of v[l].
template <std::size_t D = kVector / 2>
inline Vector sums_of(Vector* v) {
  for (std::size_t i = 0; i < D; ++i) v[i] = first_blocks<D>(v[i], v[i + D]) + second_blocks<D>(v[i], v[i + D]);
  if constexpr (D == 1)
    return v[0];
  else
    return sums_of<D / 2>(v);
}

// Transposes blocks of D x D elements, and then those within each block.
template <std::size_t D = kVector / 2>
inline void transpose(Vector* v) {
  for (std::size_t i = 0; i < kVector; ++i) {
    if ((i & D) != 0) continue;
    Vector const a = v[i], b = v[i + D];
    v[i] = first_blocks<D>(a, b);
    v[i + D] = second_blocks<D>(a, b);
  }
  if constexpr (D > 1) transpose<D / 2>(v);
}

// Calls f(k) for vectors that begin at k = 0, kVector, ... and cover n numbers; the last vector overlaps the one before
// it if n is not a multiple. REQUIRES: n >= kVector, and f writes the same numbers when it is called for them again.
template <class F>
inline void each_vector(std::size_t n, F f) {
  for (std::size_t k = 0; k + kVector <= n; k += kVector) f(k);
  if (n % kVector != 0) f(n - kVector);
}

// Returns x with the first lanes set to 0.
inline Vector without_first(std::size_t lanes, Vector x) {
  VectorIndex lane;
  for (std::size_t l = 0; l < kVector; ++l) lane[l] = static_cast<int>(l);
  return lane >= static_cast<int>(lanes) ? x : Vector{};
}

// Returns the sum of f(k) over vectors that cover n numbers; each number counts once. The last kLanes numbers are added
// to the partial sums in order. REQUIRES: n >= kLanes.
template <class F>
inline float sum_vectors(std::size_t n, F f) {
  Partials sum = {};
  std::size_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    for (std::size_t v = 0; v < Partials::kVectors; ++v) sum.of[v] += f(k + v * kVector);
  }
  std::size_t const counted = kLanes - n % kLanes;  // of the last kLanes numbers
  for (std::size_t v = counted / kVector; k < n && v < Partials::kVectors; ++v) {
    std::size_t const before = v * kVector;
    sum.of[v] += without_first(counted > before ? counted - before : 0, f(n - kLanes + before));
  }
  return sum.total();
}

#endif

// Calls f(k) for the numbers of a row, T at a time: floats spread over the lanes, or vectors on one host thread. f may
// be called again for the same numbers, as in each_vector(). REQUIRES: n >= kLanes if T is a vector.
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
