// SPDX-License-Identifier: Apache-2.0
// Estimates how often rows were used of late, in 16 to 32 bytes for each row of a cache. A count-min sketch that
// increments only the smallest counters of a key, and that halves all counters after a number of uses. Source: TinyLFU
// (Einziger, Friedman and Manes, ACM Transactions on Storage 13(4), 2017, sections 3.1 to 3.4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::cache {

class FrequencySketch {
 public:
  static constexpr std::uint32_t kCountMax = 15;  // counters stop here
  // Counters are halved when this number of uses for each row of the cache has been added. Halving also halves the
  // number of added uses.
  static constexpr std::uint64_t kUsesOfRow = 10;

  // rows: of the cache. REQUIRES: rows > 0.
  explicit FrequencySketch(std::size_t rows);

  void add(Key key);
  // Returns at least the number of uses, or kCountMax if it is smaller, as long as nothing has been halved. Keys with
  // equal counters make it larger.
  std::uint32_t estimate(Key key) const;

 private:
  static constexpr std::size_t kHashes = 4;

  std::array<std::size_t, kHashes> counters_of(Key key) const;
  void halve();

  std::size_t width_;                   // counters of a hash; a power of two
  std::vector<std::uint8_t> counters_;  // (kHashes, width_)
  std::uint64_t period_, added_ = 0;
};

}  // namespace gpups::cache
