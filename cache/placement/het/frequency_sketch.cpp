// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/het/frequency_sketch.hpp"

#include <algorithm>
#include <bit>

#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"

namespace gpups::cache {
namespace {

// A period adds 10 uses for each row of the cache, so that most counters belong to one row that is used often.
constexpr std::size_t kCountersOfRow = 4;

}  // namespace

FrequencySketch::FrequencySketch(std::size_t rows)
    : width_(std::bit_ceil(kCountersOfRow * rows)), counters_(kHashes * width_), period_(kUsesOfRow * rows) {
  GPUPS_ASSERT(rows > 0);
}

std::array<std::size_t, FrequencySketch::kHashes> FrequencySketch::counters_of(Key key) const {
  std::array<std::size_t, kHashes> counters{};
  std::uint64_t hash = kernels::hash_of(key);
  for (std::size_t i = 0; i < kHashes; ++i) {
    counters[i] = i * width_ + (hash & (width_ - 1));
    hash = kernels::mix(hash + 0x9E3779B97F4A7C15U);
  }
  return counters;
}

std::uint32_t FrequencySketch::estimate(Key key) const {
  std::uint32_t least = kCountMax;
  for (std::size_t const counter : counters_of(key)) least = std::min<std::uint32_t>(least, counters_[counter]);
  return least;
}

void FrequencySketch::add(Key key) {
  if (std::uint32_t const least = estimate(key); least < kCountMax) {
    for (std::size_t const counter : counters_of(key)) {
      if (counters_[counter] == least) ++counters_[counter];
    }
  }
  if (++added_ == period_) halve();
}

void FrequencySketch::halve() {
  for (auto& counter : counters_) counter = static_cast<std::uint8_t>(counter / 2);
  added_ /= 2;
}

}  // namespace gpups::cache
