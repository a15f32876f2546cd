// SPDX-License-Identifier: Apache-2.0
#include "kernels/widen.hpp"

#include <algorithm>
#include <cstdint>

#include "kernels/assert.hpp"
#include "kernels/launch.hpp"
#ifndef __CUDACC__
#include "kernels/float_vector.hpp"
#endif

namespace gpups::kernels {

// Strides are multiples of four numbers.
#ifdef __CUDACC__
template <class T>
__device__ inline float low_half(std::uint32_t two) {
  return to_float(T{static_cast<std::uint16_t>(two)});
}

template <class T, Space S>
void widen_as(Exec<S> ex, std::size_t n, T const* from, float* to) {
  each(ex, n / 4, [from, to] GPUPS_FN(std::size_t i) {
    uint2 const four = reinterpret_cast<uint2 const*>(from)[i];
    reinterpret_cast<float4*>(to)[i] =
        make_float4(low_half<T>(four.x), low_half<T>(four.x >> 16), low_half<T>(four.y), low_half<T>(four.y >> 16));
  });
}
#else
template <std::size_t kLanes, class T>
void widen_vector(T const* from, float* to) {
  FloatVector<kLanes> numbers;
  numbers.load(from);
  numbers.store(to);
}

template <class T, Space S>
void widen_as(Exec<S> ex, std::size_t n, T const* from, float* to) {
  ex.arena->blocks((n + kBlockElements - 1) / kBlockElements, [=](std::size_t block) {
    std::size_t const first = block * kBlockElements, last = std::min(first + kBlockElements, n);
    std::size_t j = first;
    for (; j + 16 <= last; j += 16) widen_vector<16>(from + j, to + j);
    for (; j < last; j += 4) widen_vector<4>(from + j, to + j);
  });
}
#endif

template <Space S>
void run(Exec<S> ex, Widen const& w) {
  GPUPS_ASSERT(w.out.rows() == w.from.rows && w.out.stride() == w.from.stride());
  GPUPS_ASSERT(w.from.type != NumberType::kFloat);
  View<float> const to = w.out.flat();
  w.from.type == NumberType::kHalf ? widen_as(ex, to.size(), w.from.flat<Half const>().data(), to.data())
                                   : widen_as(ex, to.size(), w.from.flat<BFloat16 const>().data(), to.data());
}

GPUPS_KERNEL(widen, Widen)

}  // namespace gpups::kernels
