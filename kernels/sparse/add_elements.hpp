// SPDX-License-Identifier: Apache-2.0
// Adds a sparse vector to an array. Moves 16 bytes per element of the sparse vector.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// into[indices[i] - first] += values[i]
struct AddElements {
  View<std::uint32_t const> indices;  // (n), distinct; those outside of first .. first + into.size() - 1 are ignored
  View<float const> values;           // (n)
  std::uint64_t first = 0;
  View<float> into;  // (size)
};
void add_elements(Stream& stream, AddElements const& arguments);

}  // namespace gpups::kernels
