// SPDX-License-Identifier: Apache-2.0
// A warp on the host, for running device code under g++ and its sanitizers: 32 threads that take turns as fibers, with
// the exchanges of kernels/warp.hpp. A thousand times slower than a GPU, and good enough for a probe or a reduction.
//
// What is to be run takes the warp, or the lanes of a team, as a template parameter and calls nothing else of CUDA:
//
//   template <class Warp> GPUPS_FN std::uint32_t find(Warp warp, unsigned threads, ..);    // in kernels/, and here
//   WarpEmulator(seed).run([&](EmulatedWarp warp, unsigned thread) { .. find(warp, 0xFFFFFFFF, ..) .. });
//   emulate_rows(seed, n, [&](std::size_t i, EmulatedLanes lanes) { .. });                 // as each_row() on a GPU
//
// A thread runs until it exchanges values or ends; the next one is drawn by `seed`, so that a missing sync() shows as a
// wrong result for some seed. Threads that wait in vain, meet in different calls or read from one that does not take
// part are errors that say so.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>

#include "kernels/launch.hpp"

namespace gpups::test {

class WarpEmulator;

// The warp as one of its threads sees it: the members of kernels::DeviceWarp.
class EmulatedWarp {
 public:
  void sync(unsigned threads) const { meet("sync", threads, 0); }
  template <class T>
  T shuffle(unsigned threads, T value, unsigned from, unsigned width = 32) const {
    return read<T>(meet("shuffle", threads, bits(value)), thread_ / width * width + from % width);
  }
  template <class T>
  T shuffle_xor(unsigned threads, T value, unsigned distance) const {
    return read<T>(meet("shuffle_xor", threads, bits(value)), thread_ ^ distance);
  }
  unsigned ballot(unsigned threads, bool vote) const { return those_with(1, meet("ballot", threads, vote ? 1 : 0)); }
  template <class T>
  unsigned match(unsigned threads, T value) const {
    return those_with(bits(value), meet("match", threads, bits(value)));
  }

 private:
  friend class WarpEmulator;
  // What the threads of a call brought.
  struct Met {
    unsigned threads;
    std::array<std::uint64_t, 32> values;
  };

  EmulatedWarp(WarpEmulator* emulator, unsigned thread) : emulator_(emulator), thread_(thread) {}

  // Waits until all `threads` have made this call.
  Met const& meet(char const* call, unsigned threads, std::uint64_t value) const;
  std::uint64_t read_bits(Met const& met, unsigned from) const;
  static unsigned those_with(std::uint64_t value, Met const& met);

  template <class T>
  static std::uint64_t bits(T value) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a GPU's threads exchange words of 4 or 8 bytes");
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    return word;
  }
  template <class T>
  T read(Met const& met, unsigned from) const {
    std::uint64_t const word = read_bits(met, from);
    T value;
    std::memcpy(&value, &word, sizeof value);
    return value;
  }

  WarpEmulator* emulator_;
  unsigned thread_;
};

using EmulatedLanes = kernels::WarpLanes<EmulatedWarp>;

class WarpEmulator {
 public:
  using Body = std::function<void(EmulatedWarp, unsigned thread)>;

  explicit WarpEmulator(std::uint64_t seed) : seed_(seed) {}

  // Runs body(warp, thread) for thread = 0 .. 31; throws what the first of them throws, and std::logic_error for
  // threads that cannot go on.
  void run(Body const& body);

 private:
  friend class EmulatedWarp;
  class Fibers;
  Fibers* fibers_ = nullptr;  // of the run under way
  std::uint64_t seed_;
};

// f(i, lanes) for i < n, by the two teams of one warp.
template <class F>
void emulate_rows(std::uint64_t seed, std::size_t n, F f) {
  WarpEmulator(seed).run([&](EmulatedWarp warp, unsigned thread) {
    constexpr auto lanes = static_cast<unsigned>(kernels::kLanes);
    unsigned const team = thread / lanes;
    for (std::size_t i = team; i < n; i += 32 / lanes)
      f(i, EmulatedLanes{thread % lanes, 0xFFFFU << team * lanes, warp});
  });
}

}  // namespace gpups::test
