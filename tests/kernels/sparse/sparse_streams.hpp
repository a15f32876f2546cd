// SPDX-License-Identifier: Apache-2.0
// Sparse vectors for tests, and their conversion to streams and back.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "kernels/sparse/encode_stream.hpp"
#include "kernels/sparse/sum_streams.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test {

inline constexpr int kGrid = -30;

// Elements of a vector in order of their indices.
template <class T>
struct Elements {
  std::vector<std::uint32_t> indices;
  std::vector<T> values;
  std::uint64_t first, size;

  std::vector<T> dense() const {
    std::vector<T> all(size, 0);
    for (std::size_t i = 0; i < indices.size(); ++i) all[indices[i] - first] = values[i];
    return all;
  }
};

// Returns a multiple of 2^-20 in [-1, 1) that is not 0.
template <class T>
T value_of(Random& random) {
  auto const units = static_cast<std::int64_t>(below(random, 1 << 21)) - (1 << 20);
  std::int64_t const some = units == 0 ? 1 : units;
  if constexpr (std::is_same_v<T, float>) return static_cast<float>(some) * 0x1p-20F;
  return some * 1024;
}

template <class T>
Elements<T> elements(Random& random, std::uint64_t first, std::uint64_t size, double density) {
  Elements<T> e{{}, {}, first, size};
  for (std::uint64_t i = 0; i < size; ++i) {
    if (uniform(random) >= density) continue;
    e.indices.push_back(static_cast<std::uint32_t>(first + i));
    e.values.push_back(value_of<T>(random));
  }
  return e;
}

template <class T>
Array<std::uint8_t> encoded(Stream& stream, Elements<T> const& e, kernels::ValueForm form, View<T> residual = {}) {
  return kernels::encode<T>(stream, {e.indices, e.values, e.first, e.size, form, residual});
}

inline kernels::StreamView view(Array<std::uint8_t> const& bytes) {
  kernels::StreamView const stream((View<std::uint8_t const>(bytes)));
  EXPECT_EQ(stream.error(), "");
  return stream;
}

template <class T>
std::vector<T> dense(Stream& stream, std::span<kernels::StreamView const> streams) {
  std::vector<T> all(streams[0].header().size, T{7});
  EXPECT_FALSE(kernels::sum<T>(stream, {streams, all}));
  return all;
}

template <class T>
double number(T x) {
  return std::is_same_v<T, float> ? static_cast<double>(x) : static_cast<double>(x) * 0x1p-30;
}

}  // namespace gpups::test
