// SPDX-License-Identifier: Apache-2.0
// Emulates a warp on the host, to run device code under g++ and its sanitizers: 32 fibers, with the exchanges of
// kernels/base/lanes.hpp. It is about a thousand times slower than a GPU, which is enough for a probe or a reduction.
//
// The code under test takes the warp, or the lanes of a team, as a template parameter and calls nothing else of CUDA:
//
//   template <class Warp> GPUPS_FN std::uint32_t find(Warp warp, unsigned threads, ..);    // in kernels/, and here
//   WarpEmulator(seed).run([&](EmulatedWarp warp, unsigned thread) { .. find(warp, 0xFFFFFFFF, ..) .. });
//   emulate_rows(seed, n, [&](std::size_t i, EmulatedLanes lanes) { .. });                 // as each_row() on a GPU
//
// A thread runs until it exchanges values or ends. Then `seed` selects the next one, so that a missing sync() gives a
// wrong result for some seed. run() throws if threads wait forever, wait for each other in different calls, or read
// from a thread that does not take part in the exchange.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>

#include "kernels/runtime/launch.hpp"

namespace gpups::test {

class WarpEmulator;

// The warp as one of its threads sees it: the members of kernels::DeviceWarp.
class EmulatedWarp {
 public:
  void sync(unsigned threads) const { exchange("sync", threads, 0); }
  template <class T>
  T shuffle(unsigned threads, T value, unsigned from, unsigned width = 32) const {
    return read<T>(exchange("shuffle", threads, bits(value)), thread_ / width * width + from % width);
  }
  template <class T>
  T shuffle_xor(unsigned threads, T value, unsigned distance) const {
    return read<T>(exchange("shuffle_xor", threads, bits(value)), thread_ ^ distance);
  }
  unsigned ballot(unsigned threads, bool vote) const {
    return those_with(1, exchange("ballot", threads, vote ? 1 : 0));
  }
  template <class T>
  unsigned match(unsigned threads, T value) const {
    return those_with(bits(value), exchange("match", threads, bits(value)));
  }

 private:
  friend class WarpEmulator;
  // The values that the threads of a call exchange.
  struct Exchanged {
    unsigned threads;
    std::array<std::uint64_t, 32> values;
  };

  EmulatedWarp(WarpEmulator* emulator, unsigned thread) : emulator_(emulator), thread_(thread) {}

  // Waits until all `threads` have made this call.
  Exchanged const& exchange(char const* call, unsigned threads, std::uint64_t value) const;
  std::uint64_t read_bits(Exchanged const& exchanged, unsigned from) const;
  static unsigned those_with(std::uint64_t value, Exchanged const& exchanged);

  template <class T>
  static std::uint64_t bits(T value) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a GPU's threads exchange words of 4 or 8 bytes");
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    return word;
  }
  template <class T>
  T read(Exchanged const& exchanged, unsigned from) const {
    std::uint64_t const word = read_bits(exchanged, from);
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

  // Runs body(warp, thread) for thread = 0 .. 31. Throws the first exception of a thread, and std::logic_error if
  // threads wait forever.
  void run(Body const& body);

 private:
  friend class EmulatedWarp;
  class Fibers;
  Fibers* fibers_ = nullptr;  // of the current run
  std::uint64_t seed_;
};

// Calls f(i, lanes) for i < n with the two teams of one warp.
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
