// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/selection/estimate_nonzeros.hpp"

#include <cmath>

#include "kernels/base/hash.hpp"

namespace gpups::comm {
namespace {

constexpr std::size_t kTogether = 16;  // elements of a cache line
constexpr std::size_t kPlaces = 128;

std::size_t nonzeros(View<float const> values) {
  std::size_t count = 0;
  for (float const value : values) count += value != 0 ? 1 : 0;
  return count;
}

}  // namespace

// Reads one cache line in each of kPlaces equal parts.
std::uint64_t estimate_nonzeros(View<float const> values, std::uint64_t seed) {
  std::size_t const lines = values.size() / kTogether;
  if (lines <= kPlaces) return nonzeros(values);
  std::size_t found = 0;
  for (std::size_t place = 0; place < kPlaces; ++place) {
    std::size_t const line = (place * lines + kernels::mix(seed * kPlaces + place) % lines) / kPlaces;
    found += nonzeros(values.slice(line * kTogether, kTogether));
  }
  double const share = static_cast<double>(found) / (kPlaces * kTogether);
  return static_cast<std::uint64_t>(std::llround(share * static_cast<double>(values.size())));
}

}  // namespace gpups::comm
