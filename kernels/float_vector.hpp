// SPDX-License-Identifier: Apache-2.0
// Vectors of 4 or 16 floats on the host, which the compiler makes of the machine's registers, and how they are read
// from numbers of any type.
#pragma once

#include <cstddef>
#include <cstring>

#include "kernels/half.hpp"
#include "kernels/streaming.hpp"

namespace gpups::kernels {

template <std::size_t kLanes>
struct FloatVector {
  static constexpr std::size_t kSize = kLanes;
  typedef float Native __attribute__((vector_size(kLanes * sizeof(float))));
  Native value;

  void load(float const* from) { std::memcpy(&value, from, sizeof value); }
  template <class T>
  void load(T const* from) {
    float numbers[kLanes];
    read_floats(from, numbers);
    load(numbers);
  }
  void store(float* to) const { std::memcpy(to, &value, sizeof value); }
};

// Writes around the caches where that is asked for and the vector is a line.
template <bool kStream, std::size_t kLanes>
inline void store(FloatVector<kLanes> const& x, float* to) {
  if constexpr (kStream && kLanes == kLineFloats) {
    float line[kLineFloats];
    x.store(line);
    stream_line(to, line);
  } else {
    x.store(to);
  }
}

}  // namespace gpups::kernels
