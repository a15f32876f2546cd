// SPDX-License-Identifier: Apache-2.0
// The reference for indices of keys: absl::flat_hash_map from keys to row numbers, with one shard for each thread.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <vector>

#include "bench/against/random_key.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/runtime/arena.hpp"
#include "kernels/runtime/space.hpp"

namespace gpups::bench {

using AbslMap = absl::flat_hash_map<std::uint64_t, std::uint32_t>;

// Returns the shard of a key, from bits that the map does not use.
inline std::size_t shard_of(Key key, std::size_t shards) { return (number(key) >> 16) % shards; }

// Calls part(p) for each p < threads of the stream, in parallel.
template <class F>
void on_each_thread(Stream& stream, F part) {
  kernels::host_exec(stream).arena->blocks(static_cast<std::size_t>(stream.threads()), part);
}

// Returns maps with keys 0 .. count - 1, each with its number as value, and with room for `room` keys.
inline std::vector<AbslMap> absl_shards(Stream& stream, std::size_t shards, std::size_t count, std::size_t room) {
  std::vector<AbslMap> maps(shards);
  on_each_thread(stream, [&](std::size_t s) {
    if (s >= shards) return;
    maps[s].reserve(room / shards);
    for (std::size_t n = 0; n < count; ++n) {
      Key const key = random_key(n);
      if (shard_of(key, shards) == s) maps[s].emplace(number(key), static_cast<std::uint32_t>(n));
    }
  });
  return maps;
}

}  // namespace gpups::bench
