// SPDX-License-Identifier: Apache-2.0
// A million draws from ten million scrambled keys with a Zipf distribution of exponent 1.05, and our side of the races
// that use them.
#pragma once

#include <memory>
#include <vector>

#include "bench/against/race.hpp"
#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::bench {

// The draws, and memory for the results.
struct KeyDraws {
  std::vector<Key> keys;
  Array<Key> unique;
  Array<std::uint32_t> positions;
};
std::shared_ptr<KeyDraws> draw_keys();

Side unique_keys_side(Stream& stream, std::shared_ptr<KeyDraws> draws);

}  // namespace gpups::bench
