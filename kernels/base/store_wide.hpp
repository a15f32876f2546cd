// SPDX-License-Identifier: Apache-2.0
// Stores of 16 bytes to the memory of a GPU. nvcc splits some assignments of a float4 or longlong2 into a store for
// each member, so that a warp stores to each sector several times.
#pragma once

#include <cstdint>

#ifdef __CUDACC__

namespace gpups::kernels {

// REQUIRES: `to` is a multiple of 16 bytes, in global memory.
__device__ inline void store_wide(float* to, float4 four) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(four.x), "f"(four.y), "f"(four.z), "f"(four.w)
               : "memory");
}
__device__ inline void store_wide(std::int64_t* to, longlong2 two) {
  asm volatile("st.global.v2.s64 [%0], {%1, %2};" ::"l"(to), "l"(two.x), "l"(two.y) : "memory");
}

}  // namespace gpups::kernels

#endif
