// SPDX-License-Identifier: Apache-2.0
// How an array is cut into one slice for each rank: by its size alone. With fewer elements than ranks some are empty.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

struct Slice {
  std::uint64_t first, size;
};

// REQUIRES: size <= 2^48 elements, fewer than 2^16 ranks.
constexpr Slice slice_of(std::uint64_t size, int ranks, Rank rank) {
  auto const count = static_cast<std::uint64_t>(ranks);
  std::uint64_t const first = size * number(rank) / count;
  return {first, size * (number(rank) + 1) / count - first};
}
template <class T>
View<T> slice_of(View<T> values, int ranks, Rank rank) {
  Slice const slice = slice_of(values.size(), ranks, rank);
  return values.slice(slice.first, slice.size);
}

}  // namespace gpups::comm
