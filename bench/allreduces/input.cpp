// SPDX-License-Identifier: Apache-2.0
#include "bench/allreduces/input.hpp"

#include <cmath>

namespace gpups::bench {
namespace {

// The finalizer of splitmix64, so that adjacent inputs give unrelated results.
std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9;
  x ^= x >> 27;
  x *= 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// Draws elements from 64 random bits: the upper half decides whether the element is present, the lower half is its
// value.
struct Draw {
  std::uint64_t stream;
  std::uint64_t threshold;  // of 2^32

  Draw(InputOptions const& options, int rank)
      : stream(mixed(options.seed * 1024 + static_cast<std::uint64_t>(rank) + 1)),
        threshold(static_cast<std::uint64_t>(std::llround(options.density * 4294967296.0))) {}

  float operator()(std::size_t index) const {
    std::uint64_t const bits = mixed(stream + index * 0x9E3779B97F4A7C15);
    float const magnitude = (static_cast<float>((bits >> 8) & 0xFFFFFF) + 1) * (1.0F / 16777217.0F);
    float const value = (bits & 1) != 0 ? magnitude : -magnitude;
    return (bits >> 32) < threshold ? value : 0.0F;
  }
};

}  // namespace

float element_of(InputOptions const& options, int rank, std::size_t index) { return Draw(options, rank)(index); }

Input::Input(InputOptions const& options, int rank)
    : density(options.density), dense(Device::host(), options.elements) {
  Draw const draw(options, rank);
  auto const expected = static_cast<std::size_t>(static_cast<double>(options.elements) * options.density * 1.01) + 1000;
  indices.reserve(expected);
  values.reserve(expected);
  float* const out = dense.data();
  for (std::size_t i = 0; i < options.elements; ++i) {
    float const value = draw(i);
    out[i] = value;
    if (value == 0) continue;
    indices.push_back(static_cast<std::uint32_t>(i));
    values.push_back(value);
  }
}

void expected_sums(InputOptions const& options, int ranks, std::size_t first, View<float> sums) {
  std::vector<Draw> draws;
  for (int rank = 0; rank < ranks; ++rank) draws.emplace_back(options, rank);
  for (std::size_t k = 0; k < sums.size(); ++k) {
    double sum = 0;
    for (Draw const& draw : draws) sum += static_cast<double>(draw(first + k));
    sums[k] = first + k < options.elements ? static_cast<float>(sum) : 0;
  }
}

}  // namespace gpups::bench
