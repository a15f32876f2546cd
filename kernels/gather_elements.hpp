// SPDX-License-Identifier: Apache-2.0
// Copies elements of a list by position. Moves the positions, and twice the bytes of the elements.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::kernels {

// to[i] = from[positions[i]]. T: Key or std::uint32_t.
template <class T>
struct GatherElements {
  View<T const> from;
  View<std::uint32_t const> positions;  // (n)
  View<T> to;                           // (n)
};
void gather_elements(Stream& stream, GatherElements<Key> const& arguments);
void gather_elements(Stream& stream, GatherElements<std::uint32_t> const& arguments);

// to[positions[i]] = from[i].
struct ScatterElements {
  View<std::uint32_t const> from;       // (n)
  View<std::uint32_t const> positions;  // (n), distinct
  View<std::uint32_t> to;
};
void scatter_elements(Stream& stream, ScatterElements const& arguments);

}  // namespace gpups::kernels
