// SPDX-License-Identifier: Apache-2.0
// Divides an array into one slice for each rank, by its size alone. Some slices of short arrays are empty.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

// Elements first .. first + size - 1 of an array.
struct Slice {
  std::uint64_t first, size;
};

// Returns the slice of `rank`. Slices begin at multiples of `unit` elements. REQUIRES: size <= 2^48 elements, fewer
// than 2^16 ranks.
constexpr Slice slice_of(std::uint64_t size, int ranks, Rank rank, std::uint64_t unit = 1) {
  auto const count = static_cast<std::uint64_t>(ranks);
  std::uint64_t const units = (size + unit - 1) / unit;
  std::uint64_t const first = std::min(size, units * number(rank) / count * unit);
  return {first, std::min(size, units * (number(rank) + 1) / count * unit) - first};
}
template <class T>
View<T> slice_of(View<T> values, int ranks, Rank rank, std::uint64_t unit = 1) {
  Slice const slice = slice_of(values.size(), ranks, rank, unit);
  return values.slice(slice.first, slice.size);
}

// Returns an upper bound of the sizes of all slices.
constexpr std::uint64_t slice_size_max(std::uint64_t size, int ranks, std::uint64_t unit = 1) {
  auto const count = static_cast<std::uint64_t>(ranks);
  return ((size + unit - 1) / unit + count - 1) / count * unit;
}

}  // namespace gpups::comm
