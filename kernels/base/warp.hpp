// SPDX-License-Identifier: Apache-2.0
// The exchange of values between the 32 threads of a warp. Code that takes the warp as a parameter uses DeviceWarp on a
// GPU, and an emulation with the same members in tests (tests/kernels/score/warp_emulator.hpp).
//
// threads: the callers, one bit each. REQUIRES: all of them call, with the same `threads`.
#pragma once

#ifdef __CUDACC__

namespace gpups::kernels {

struct DeviceWarp {
  // Orders memory: all threads may then read what any thread wrote before.
  __device__ void sync(unsigned threads) const { __syncwarp(threads); }
  // Returns the value of thread number `from` in the caller's group of `width` neighbouring threads.
  template <class T>
  __device__ T shuffle(unsigned threads, T value, unsigned from, unsigned width = 32) const {
    return __shfl_sync(threads, value, static_cast<int>(from), static_cast<int>(width));
  }
  // Returns the value of the thread whose number differs from the caller's in the bits of `distance`.
  template <class T>
  __device__ T shuffle_xor(unsigned threads, T value, unsigned distance) const {
    return __shfl_xor_sync(threads, value, static_cast<int>(distance));
  }
  // Returns the threads whose `vote` is true.
  __device__ unsigned ballot(unsigned threads, bool vote) const { return __ballot_sync(threads, vote); }
  // Returns the threads whose value equals that of the caller. T has 4 or 8 bytes.
  template <class T>
  __device__ unsigned match(unsigned threads, T value) const {
    return __match_any_sync(threads, value);
  }
};

}  // namespace gpups::kernels

#endif
