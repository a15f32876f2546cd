// SPDX-License-Identifier: Apache-2.0
// Compares look-ups of a million keys per batch, out of 32 million in an index that is three quarters full, with one
// absl::flat_hash_map that all threads read, each for its part of the batch.
#include <memory>

#include "bench/against/absl_map.hpp"
#include "bench/against/races.hpp"
#include "kernels/index/key_index.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::bench {
namespace {

constexpr std::size_t kKeys = std::size_t{32} << 20, kBatch = std::size_t{1} << 20, kBatches = 16;

struct State {
  kernels::KeyIndex index;
  std::vector<AbslMap> map;
  std::vector<std::vector<Key>> batches;
  Array<std::uint32_t> ids;
  std::size_t ours = 0, theirs = 0;  // number of batches so far
};

// Keys are drawn from the first `range` numbers; the index does not contain those from kKeys on.
Race find_race(Stream& stream, std::size_t range) {
  auto const state = std::make_shared<State>();
  state->index = kernels::KeyIndex(stream.device(), kKeys);
  state->ids = Array<std::uint32_t>(stream.device(), kBatch);
  std::vector<Key> keys(kBatch);
  for (std::size_t first = 0; first < kKeys; first += kBatch) {
    for (std::size_t k = 0; k < kBatch; ++k) keys[k] = random_key(first + k);
    state->index.wait_find_or_insert(stream, View<Key const>(keys), state->ids);
  }
  state->map = absl_shards(stream, 1, kKeys, kKeys);
  test::Random random(1);
  for (std::size_t b = 0; b < kBatches; ++b) {
    for (Key& key : keys) key = random_key(test::below(random, range));
    state->batches.push_back(keys);
  }
  return {"keys",
          {"find", kBatch,
           [state, &stream] {
             state->index.find(stream, View<Key const>(state->batches[state->ours++ % kBatches]), state->ids);
           }},
          {"absl::flat_hash_map", kBatch, [state, &stream] {
             auto const& batch = state->batches[state->theirs++ % kBatches];
             auto const parts = static_cast<std::size_t>(stream.threads());
             on_each_thread(stream, [&](std::size_t part) {
               for (std::size_t i = kBatch * part / parts; i < kBatch * (part + 1) / parts; ++i) {
                 auto const found = state->map[0].find(number(batch[i]));
                 state->ids[i] = found == state->map[0].end() ? kernels::kNoRow : found->second;
               }
             });
           }}};
}

}  // namespace

Race find_hits_race(Stream& stream) { return find_race(stream, kKeys); }
Race find_half_missing_race(Stream& stream) { return find_race(stream, 2 * kKeys); }

}  // namespace gpups::bench
