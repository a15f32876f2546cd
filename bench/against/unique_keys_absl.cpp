// SPDX-License-Identifier: Apache-2.0
// Compares finding the distinct keys, and the position of each entry's key, with hash maps of Abseil: one for each
// thread, which reads all keys and keeps those of its share of the hashes. Positions are within a share.
#include <absl/container/flat_hash_map.h>

#include "bench/against/races.hpp"
#include "bench/against/unique_keys.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/runtime/arena.hpp"
#include "kernels/runtime/space.hpp"

namespace gpups::bench {

Race unique_keys_absl_race(Stream& stream) {
  auto const draws = draw_keys();
  Side const theirs{"absl::flat_hash_map", static_cast<double>(draws->keys.size()), [draws, &stream] {
                      auto const shares = static_cast<std::uint32_t>(stream.threads());
                      kernels::host_exec(stream).arena->blocks(shares, [&](std::size_t share) {
                        absl::flat_hash_map<std::uint64_t, std::uint32_t> places;
                        for (std::size_t i = 0; i < draws->keys.size(); ++i) {
                          Key const key = draws->keys[i];
                          if (kernels::home_of(key, shares) != share) continue;
                          auto const next = static_cast<std::uint32_t>(places.size());
                          draws->positions[i] = places.emplace(number(key), next).first->second;
                        }
                      });
                    }};
  return {"keys", unique_keys_side(stream, draws), theirs};
}

}  // namespace gpups::bench
