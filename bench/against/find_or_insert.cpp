// SPDX-License-Identifier: Apache-2.0
// Compares insertion of a million keys per batch, half of which are new, into an index of 24 million keys and more,
// with absl::flat_hash_map: one shard for each thread, which searches the whole batch for its keys. Both have room for
// 40 million keys from the beginning.
#include <memory>

#include "bench/against/absl_map.hpp"
#include "bench/against/races.hpp"
#include "kernels/index/key_index.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::bench {
namespace {

constexpr std::size_t kKeys = std::size_t{24} << 20, kRoom = std::size_t{40} << 20, kBatch = std::size_t{1} << 20;

// The batches of one side; each is drawn before it is used.
struct Batches {
  test::Random random{1};
  std::size_t count = kKeys;  // number of existing keys
  std::vector<Key> keys = std::vector<Key>(kBatch);

  void next() {
    std::size_t const before = count;
    for (Key& key : keys) {
      bool const is_new = test::below(random, 2) == 0;
      key = random_key(is_new ? count++ : test::below(random, before));
    }
  }
};

struct State {
  kernels::KeyIndex index;
  std::vector<AbslMap> maps;
  Batches ours, theirs;
  Array<std::uint32_t> ids;
};

}  // namespace

Race find_or_insert_race(Stream& stream) {
  auto const state = std::make_shared<State>();
  auto const shards = static_cast<std::size_t>(stream.threads());
  state->index = kernels::KeyIndex(stream.device(), kRoom);
  state->ids = Array<std::uint32_t>(stream.device(), kBatch);
  std::vector<Key> keys(kBatch);
  for (std::size_t first = 0; first < kKeys; first += kBatch) {
    for (std::size_t k = 0; k < kBatch; ++k) keys[k] = random_key(first + k);
    state->index.wait_find_or_insert(stream, View<Key const>(keys), state->ids);
  }
  state->maps = absl_shards(stream, shards, kKeys, kRoom);
  return {
      "keys",
      {"find or insert", kBatch,
       [state, &stream] { state->index.wait_find_or_insert(stream, View<Key const>(state->ours.keys), state->ids); },
       [state] { state->ours.next(); }},
      {"absl, a shard a thread", kBatch,
       [state, &stream, shards] {
         on_each_thread(stream, [&](std::size_t s) {
           auto& map = state->maps[s];
           for (std::size_t i = 0; i < kBatch; ++i) {
             Key const key = state->theirs.keys[i];
             if (shard_of(key, shards) != s) continue;
             state->ids[i] = map.try_emplace(number(key), static_cast<std::uint32_t>(map.size())).first->second;
           }
         });
       },
       [state] { state->theirs.next(); }}};
}

}  // namespace gpups::bench
