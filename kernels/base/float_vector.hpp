// SPDX-License-Identifier: Apache-2.0
// Vectors of 4 or 16 floats on the host, which the compiler keeps in vector registers. They can be loaded from numbers
// of any data type.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/base/half.hpp"
#include "kernels/base/nontemporal.hpp"

namespace gpups::kernels {

// Vectors of kLanes numbers of 32 or 16 bits.
template <std::size_t kLanes>
struct BitVectors {
  typedef std::uint32_t Words __attribute__((vector_size(kLanes * sizeof(std::uint32_t))));
  typedef std::uint16_t Halves __attribute__((vector_size(kLanes * sizeof(std::uint16_t))));
};
// Returns kLanes numbers of 16 bits, at any address, as 32-bit words.
template <std::size_t kLanes>
inline typename BitVectors<kLanes>::Words words_of(void const* from) {
  using Words = typename BitVectors<kLanes>::Words;
  typename BitVectors<kLanes>::Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  return __builtin_convertvector(halves, Words);
}

// A vector of kLanes floats.
template <std::size_t kLanes>
struct FloatVector {
  static constexpr std::size_t kSize = kLanes;
  typedef float Native __attribute__((vector_size(kLanes * sizeof(float))));
  Native value;

  void load(float const* from) { std::memcpy(&value, from, sizeof value); }
  // Converts in registers, because a vector load of elements that were just stored one by one is slow.
  void load(BFloat16 const* from) { value = std::bit_cast<Native>(words_of<kLanes>(from) << 16); }
  template <class T>
  void load(T const* from) {
    float numbers[kLanes];
    read_floats(from, numbers);
    load(numbers);
  }
  void store(float* to) const { std::memcpy(to, &value, sizeof value); }
};

// Stores a vector; around the caches if kStream is set and the vector is a whole cache line.
template <bool kStream, std::size_t kLanes>
inline void store(FloatVector<kLanes> const& x, float* to) {
  if constexpr (kStream && kLanes == kLineFloats) {
    float line[kLineFloats];
    x.store(line);
    store_line_nontemporal(to, line);
  } else {
    x.store(to);
  }
}

}  // namespace gpups::kernels
