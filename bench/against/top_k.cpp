// SPDX-License-Identifier: Apache-2.0
// Compares the selection of the largest 1 % of 16 million normally distributed floats, with their indices, with reading
// as many bytes.
#include "kernels/sparse/top_k.hpp"

#include <memory>

#include "bench/against/copy_side.hpp"
#include "bench/against/races.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::bench {
namespace {

constexpr std::size_t kSize = std::size_t{16} << 20, kKept = kSize / 100;

struct State {
  Array<float> values;
  Array<std::uint32_t> indices;
  Array<float> kept;
};

std::vector<float> normal_floats() {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(kSize);
  for (float& x : values) x = normal(random);
  return values;
}

}  // namespace

Race top_k_race(Stream& stream) {
  auto const state = std::make_shared<State>();
  state->values = to_device(stream, normal_floats());
  state->indices = Array<std::uint32_t>(stream.device(), kKept);
  state->kept = Array<float>(stream.device(), kKept);
  return {"bytes",
          {"top_k", kSize * sizeof(float),
           [state, &stream] {
             kernels::wait_top_k(
                 stream,
                 {.values = state->values, .k = kKept, .indices = state->indices.view(), .kept = state->kept.view()});
           }},
          read_side(stream)};
}

}  // namespace gpups::bench
