// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/sparse/check_indices.hpp"

#include <algorithm>

#include "kernels/check.hpp"

namespace gpups::comm {

void check_indices(std::uint64_t size, View<std::uint32_t const> indices) {
  std::uint32_t largest = 0, descents = 0;  // without branches: the list is read as fast as memory gives it
  for (std::size_t i = 0; i < indices.size(); ++i) largest = std::max(largest, indices[i]);
  for (std::size_t i = 1; i < indices.size(); ++i) descents |= indices[i] <= indices[i - 1] ? 1U : 0U;
  GPUPS_REQUIRE(indices.empty() || largest < size,
                "a sparse vector of {} elements names element {} (indices are ascending, and below the size): give "
                "indices of this vector",
                size, largest);
  GPUPS_REQUIRE(descents == 0,
                "the indices of a sparse vector are not ascending, each once (equal ones would be summed at the same "
                "time): sort them, and add up the values of equal ones");
}

void check_last_index(std::uint64_t size, View<std::uint32_t const> indices) {
  if (std::lower_bound(indices.begin(), indices.end(), size) != indices.end()) check_indices(size, indices);
}

}  // namespace gpups::comm
