// SPDX-License-Identifier: Apache-2.0
// The columns of one row as a team of lanes processes them: a vector at a time on the host, four columns in each lane
// of a GPU. A formula is written once, for a Value of several columns. sum(n, f) returns the sum of f(j) over all
// columns below n; nonfinite(n, f) returns 0 if every f(j) is 0, else NaN. REQUIRES: rows have row_stride() columns, a
// multiple of four.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "kernels/base/vector.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// The number of partial sums of a reduction over a row, on any machine. Column j is added to partial sum j % 64, and
// partial sums are added in pairs of equal distance.
inline constexpr std::size_t kRowPartials = 64;

#ifdef __CUDACC__
// The values of four columns.
struct Quad {
  float4 of;

  __device__ Quad() : of{0, 0, 0, 0} {}
  __device__ Quad(float a) : of{a, a, a, a} {}  // NOLINT: a number is the same in all columns
  __device__ Quad(float a, float b, float c, float d) : of{a, b, c, d} {}
  friend __device__ Quad operator+(Quad a, Quad b) {
    return {a.of.x + b.of.x, a.of.y + b.of.y, a.of.z + b.of.z, a.of.w + b.of.w};
  }
  friend __device__ Quad operator-(Quad a, Quad b) {
    return {a.of.x - b.of.x, a.of.y - b.of.y, a.of.z - b.of.z, a.of.w - b.of.w};
  }
  friend __device__ Quad operator*(Quad a, Quad b) {
    return {a.of.x * b.of.x, a.of.y * b.of.y, a.of.z * b.of.z, a.of.w * b.of.w};
  }
};
template <class F>
__device__ Quad apply(F f, Quad a, Quad b) {
  return {f(a.of.x, b.of.x), f(a.of.y, b.of.y), f(a.of.z, b.of.z), f(a.of.w, b.of.w)};
}
__device__ inline Quad square_root(Quad a) { return {sqrtf(a.of.x), sqrtf(a.of.y), sqrtf(a.of.z), sqrtf(a.of.w)}; }
// Returns a / b, or 0 if b is 0, which it may be if all gradients so far were 0.
__device__ inline float quotient(float a, float b) { return b > 0 ? a / b : 0.0F; }
__device__ inline Quad quotient(Quad a, Quad b) {
  return apply([](float x, float y) { return quotient(x, y); }, a, b);
}

// Returns z minus the nearest number in [-l1, l1].
__device__ inline float beyond(float z, float l1) { return z > l1 ? z - l1 : (z < -l1 ? z + l1 : 0.0F); }
__device__ inline Quad beyond(Quad z, float l1) {
  return apply([](float x, float y) { return beyond(x, y); }, z, l1);
}
// Returns a if z is 0, else b.
__device__ inline float where_zero(float z, float a, float b) { return z == 0 ? a : b; }
__device__ inline Quad where_zero(Quad z, float a, float b) {
  return {where_zero(z.of.x, a, b), where_zero(z.of.y, a, b), where_zero(z.of.z, a, b), where_zero(z.of.w, a, b)};
}

// Returns sum * unit of two columns, for exact sums.
__device__ inline float2 scaled_pair(std::int64_t const* sum, double unit) {
  longlong2 const two = *reinterpret_cast<longlong2 const*>(sum);
  return {static_cast<float>(static_cast<double>(two.x) * unit), static_cast<float>(static_cast<double>(two.y) * unit)};
}
// Returns sum * unit, for exact sums.
template <class V>
__device__ V scaled(std::int64_t const* sum, double unit) {
  float2 const low = scaled_pair(sum, unit), high = scaled_pair(sum + 2, unit);
  return {low.x, low.y, high.x, high.y};
}

// A function of columns, whose values in the first columns of each lane are in registers after put().
template <class F>
struct HeldColumns {
  F f;
  Quad first;
  __device__ Quad operator()(std::size_t j) const { return j < kRowPartials ? first : f(j); }
  __device__ void put(std::size_t j, Quad value) { first = j < kRowPartials ? value : first; }
};

// The columns of a row in the lanes of a GPU team.
struct DeviceColumns {
  using Value = Quad;
  DeviceLanes lanes;

  __device__ static Quad get(float const* from) {
    Quad value;
    value.of = *reinterpret_cast<float4 const*>(from);
    return value;
  }
  __device__ static void put(float* to, Quad value) { *reinterpret_cast<float4*>(to) = value.of; }
  template <class F>
  __device__ float sum(std::size_t n, F f) const {
    Quad part;
    for (std::size_t j = 4 * lanes.lane; j < n; j += kRowPartials) part = part + f(j);
    for (unsigned half = kLanes / 2; half > 0; half /= 2) {
      part = part + Quad{__shfl_xor_sync(lanes.mask, part.of.x, half, kLanes),
                         __shfl_xor_sync(lanes.mask, part.of.y, half, kLanes),
                         __shfl_xor_sync(lanes.mask, part.of.z, half, kLanes),
                         __shfl_xor_sync(lanes.mask, part.of.w, half, kLanes)};
    }
    return (part.of.x + part.of.z) + (part.of.y + part.of.w);
  }
  template <class F>
  __device__ float nonfinite(std::size_t n, F f) const {
    Quad bad;
    for (std::size_t j = 4 * lanes.lane; j < n; j += kRowPartials) bad = bad + f(j);
    float const any = (bad.of.x + bad.of.z) + (bad.of.y + bad.of.w);
    return __any_sync(lanes.mask, !(any == 0)) != 0 ? nanf("") : 0.0F;
  }
  template <class F>
  __device__ static HeldColumns<F> hold(F f) {
    return {f, {}};
  }
  // Returns the first columns of a row of exact sums times unit that this lane processes: those from 4 * lane on, or 0
  // beyond column n. All lanes of the team call it.
  __device__ Quad first_scaled(std::int64_t const* sum, std::size_t n, double unit) const {
    std::size_t const two_lanes = 4 * (lanes.lane & ~1U), at = two_lanes + lanes.lane % 2 * 2;
    float2 low = at < n ? scaled_pair(sum + at, unit) : float2{0, 0};
    float2 high = at + 4 < n ? scaled_pair(sum + at + 4, unit) : float2{0, 0};
    lanes.transpose(low.x, high.x);
    lanes.transpose(low.y, high.y);
    return {low.x, low.y, high.x, high.y};
  }
  __device__ bool first() const { return lanes.first(); }
  __device__ void sync() const { lanes.sync(); }
};
#else
using Quad = float __attribute__((vector_size(16)));

inline float quotient(float a, float b) { return b > 0 ? a / b : 0.0F; }
template <class V>
V quotient(V a, V b) {
  return b > 0.0F ? a / b : V{};
}
// Returns z minus the nearest number in [-l1, l1].
template <class V>
V beyond(V z, float l1) {
  return z > l1 ? z - l1 : (z < -l1 ? z + l1 : V{});
}
// Returns a if z is 0, else b.
template <class V>
V where_zero(V z, float a, float b) {
  return z == 0.0F ? V{} + a : V{} + b;
}

// Returns sum * unit as floats, for exact sums of type int64 or double. Each operation rounds once, as for a number.
template <class V, class T>
V scaled(T const* sum, double unit) {
  hn::CappedTag<float, sizeof(V) / sizeof(float)> const floats;
  hn::Half<decltype(floats)> const half;
  hn::Rebind<double, decltype(half)> const doubles;
  auto const product = [&](T const* from) {
    if constexpr (std::is_same_v<T, double>)  // -0 becomes 0, as from an integer
      return hn::DemoteTo(half, hn::Mul(hn::Add(hn::LoadU(doubles, from), hn::Zero(doubles)), hn::Set(doubles, unit)));
    else
      return hn::DemoteTo(half,
                          hn::Mul(hn::ConvertTo(doubles, hn::LoadU(hn::RebindToSigned<decltype(doubles)>(), from)),
                                  hn::Set(doubles, unit)));
  };
  return std::bit_cast<V>(hn::Combine(floats, product(sum + hn::MaxLanes(half)), product(sum)));
}

// The columns of a row in vectors V.
template <class V>
struct HostColumns {
  using Value = V;
  static constexpr std::size_t kWidth = sizeof(V) / sizeof(float);

  static V get(float const* from) { return load<V>(from); }
  static void put(float* to, V value) { store(to, value); }
  template <class F>
  GPUPS_INLINED_FN float sum(std::size_t n, F f) const {
    return sum_parts(n, f, std::make_index_sequence<kRowPartials / kWidth>{});
  }
  template <class F>
  GPUPS_INLINED_FN float nonfinite(std::size_t n, F f) const {
    V bad = {};
    for (std::size_t j = 0; j < n; j += kWidth) bad += f(j);
    return are_zero(bad) ? 0.0F : std::numeric_limits<float>::quiet_NaN();
  }
  // On the host, a function of columns is called again for what it has returned before.
  template <class F>
  struct Held : F {
    void put(std::size_t, V const&) const {}
  };
  template <class F>
  GPUPS_INLINED_FN static Held<F> hold(F f) {
    return {f};
  }
  bool first() const { return true; }
  void sync() const {}

 private:
  static bool are_zero(V const& x) {
    hn::CappedTag<float, kWidth> const d;
    return hn::AllTrue(d, hn::Eq(to_highway(x), hn::Zero(d)));
  }
  // The indices of parts are constants, so that parts stay in registers.
  template <class F, std::size_t... k>
  GPUPS_INLINED_FN static float sum_parts(std::size_t n, F f, std::index_sequence<k...>) {
    V part[sizeof...(k)] = {};
    std::size_t j = 0;
    for (; j + kRowPartials <= n; j += kRowPartials) ((part[k] += f(j + kWidth * k)), ...);
    ((j + kWidth * k < n ? void(part[k] += f(j + kWidth * k)) : void()), ...);
    return pairwise(total(part, std::make_index_sequence<sizeof...(k) / 2>{}));
  }
  template <std::size_t... k>
  GPUPS_INLINED_FN static V total(V* part, std::index_sequence<k...>) {
    ((part[k] += part[k + sizeof...(k)]), ...);
    if constexpr (sizeof...(k) == 1)
      return part[0];
    else
      return total(part, std::make_index_sequence<sizeof...(k) / 2>{});
  }
  GPUPS_INLINED_FN static float pairwise(V of) {
    float one[kWidth];
    store(one, of);
    for (std::size_t half = kWidth / 2; half > 0; half /= 2) {
#pragma GCC ivdep
      for (std::size_t k = 0; k < half; ++k) one[k] += one[k + half];
    }
    return one[0];
  }
};
#endif

}  // namespace gpups::kernels
