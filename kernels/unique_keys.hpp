// SPDX-License-Identifier: Apache-2.0
// The distinct keys of a batch, grouped by home, and the place of each entry's key among them.
// Moves 12 bytes per entry and 8 per distinct key, and about 24 bytes of scratch per entry.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::kernels {

inline constexpr std::size_t kUniqueKeysMax = (std::size_t{1} << 28) - 1;

struct UniqueKeys {
  View<Key const> keys;              // (n), n <= kUniqueKeysMax
  std::uint32_t homes;               // at least 1
  View<Key> unique;                  // (>= n), the first `home_offsets[homes]` are written
  View<std::uint32_t> positions;     // (n), unique[positions[i]] == keys[i]
  View<std::uint32_t> home_offsets;  // (homes + 1), on the host: home h has unique[home_offsets[h] .. [h + 1])
};

// Within a home the order is fixed by the keys alone: the same for any number of threads, though not the same on host
// and device. Waits for `stream`.
void wait_unique_keys(Stream& stream, UniqueKeys const& arguments);

}  // namespace gpups::kernels
