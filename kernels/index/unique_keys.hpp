// SPDX-License-Identifier: Apache-2.0
// Finds the distinct keys of each part of a batch, grouped by home; the position of each entry's key among them; and,
// if requested, the entries of each key. Processes all parts in one pass.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::kernels {

inline constexpr std::size_t kUniqueKeysMax = (std::size_t{1} << 28) - 1;

// One part of the batch. Equal keys of different parts are different keys.
struct KeyPart {
  View<Key const> keys;              // (n)
  View<Key> unique;                  // (>= n), the first `home_offsets[homes]` are written
  View<std::uint32_t> positions;     // (n), unique[positions[i]] == keys[i]
  View<std::uint32_t> home_offsets;  // (homes + 1), on the host: home h has unique[home_offsets[h] .. [h + 1])

  // Both are given, or both are empty. Key r has the entries order[offsets[r] .. offsets[r + 1]), ascending.
  View<std::uint32_t> offsets = {};  // (>= n + 1), the first `home_offsets[homes] + 1` are written
  View<std::uint32_t> order = {};    // (n)
};

struct UniqueKeys {
  std::span<KeyPart const> parts;  // with at most kUniqueKeysMax entries together
  std::uint32_t homes;             // at least 1
};

// Within a home, the order of keys depends only on the keys of the part. It is the same for any number of threads and
// for any other parts, but not the same on host and GPU. Waits for `stream`.
void wait_unique_keys(Stream& stream, UniqueKeys const& arguments);

}  // namespace gpups::kernels
