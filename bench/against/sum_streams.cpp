// SPDX-License-Identifier: Apache-2.0
// Compares the sum of the sparse vectors of four ranks, as a stream of halves, with merges of sorted (index, value)
// pairs, which other sparse allreduces use. Each vector has 1 % of 16 million elements at random positions. The merge
// uses one thread.
#include "kernels/sparse/sum_streams.hpp"

#include <algorithm>
#include <memory>

#include "bench/against/races.hpp"
#include "kernels/sparse/encode_stream.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::bench {
namespace {

constexpr std::size_t kSize = std::size_t{16} << 20, kCount = kSize / 100, kRanks = 4;

struct Pair {
  std::uint32_t index;
  float value;
};
using Pairs = std::vector<Pair>;

Pairs random_pairs(test::Random& random) {
  std::vector<std::uint32_t> indices(kCount);
  for (auto& i : indices) i = static_cast<std::uint32_t>(test::below(random, kSize));
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  Pairs pairs;
  for (std::uint32_t const i : indices) pairs.push_back({i, static_cast<float>(test::uniform(random)) + .5F});
  return pairs;
}

Array<std::uint8_t> encoded(Stream& stream, Pairs const& pairs) {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
  for (Pair const p : pairs) {
    indices.push_back(p.index);
    values.push_back(p.value);
  }
  return kernels::encode<float>(stream, {indices, values, 0, kSize, {kernels::StreamValues::kHalf, 0}});
}

void merge(Pairs const& a, Pairs const& b, Pairs& sum) {
  sum.resize(a.size() + b.size());
  auto i = a.begin(), j = b.begin();
  auto to = sum.begin();
  while (i != a.end() && j != b.end()) {
    if (i->index == j->index) {
      *to++ = {i->index, (i++)->value + (j++)->value};
    } else {
      *to++ = i->index < j->index ? *i++ : *j++;
    }
  }
  to = std::copy(i, a.end(), to);
  to = std::copy(j, b.end(), to);
  sum.resize(static_cast<std::size_t>(to - sum.begin()));
}

struct State {
  std::vector<Pairs> pairs;
  std::vector<Array<std::uint8_t>> bytes;
  std::vector<kernels::StreamView> streams;
  Pairs low, high, sum;
};

}  // namespace

Race sum_streams_race(Stream& stream) {
  auto const state = std::make_shared<State>();
  test::Random random(1);
  for (std::size_t r = 0; r < kRanks; ++r) {
    state->pairs.push_back(random_pairs(random));
    state->bytes.push_back(encoded(stream, state->pairs.back()));
    state->streams.emplace_back(state->bytes.back());
  }
  return {
      "elements",
      {"sum", kRanks * kCount,
       [state, &stream] {
         kernels::sum<float>(stream, kernels::SumToStream<float>{state->streams, {kernels::StreamValues::kHalf, 0}});
       }},
      {"merge", kRanks * kCount, [state] {
         merge(state->pairs[0], state->pairs[1], state->low);
         merge(state->pairs[2], state->pairs[3], state->high);
         merge(state->low, state->high, state->sum);
       }}};
}

}  // namespace gpups::bench
