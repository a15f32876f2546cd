// SPDX-License-Identifier: Apache-2.0
// How the 32 threads of a warp exchange values. Code that takes the warp as a parameter is given DeviceWarp on a GPU,
// and an emulation with the same members in tests (tests/kernels/score/warp_emulator.hpp).
//
// `threads` are the callers, one bit each. REQUIRES: all of them call, with the same `threads`.
#pragma once

#ifdef __CUDACC__

namespace gpups::kernels {

struct DeviceWarp {
  // What one thread wrote before, all may read after.
  __device__ void sync(unsigned threads) const { __syncwarp(threads); }
  // The value of thread `from` of each `width` neighbours, of which the caller is one.
  template <class T>
  __device__ T shuffle(unsigned threads, T value, unsigned from, unsigned width = 32) const {
    return __shfl_sync(threads, value, static_cast<int>(from), static_cast<int>(width));
  }
  // The value of the thread whose number differs from the caller's in the bits of `distance`.
  template <class T>
  __device__ T shuffle_xor(unsigned threads, T value, unsigned distance) const {
    return __shfl_xor_sync(threads, value, static_cast<int>(distance));
  }
  // The threads whose `vote` is true.
  __device__ unsigned ballot(unsigned threads, bool vote) const { return __ballot_sync(threads, vote); }
  // The threads whose value is that of the caller: 4 or 8 bytes.
  template <class T>
  __device__ unsigned match(unsigned threads, T value) const {
    return __match_any_sync(threads, value);
  }
};

}  // namespace gpups::kernels

#endif
