// SPDX-License-Identifier: Apache-2.0
// Copies elements of lists by position, of many lists in one launch. Moves the positions, and twice the bytes of the
// elements.
#pragma once

#include <cstdint>
#include <span>

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
void gather_elements(Stream& stream, std::span<GatherElements<Key> const> lists);
void gather_elements(Stream& stream, std::span<GatherElements<std::uint32_t> const> lists);
template <class T>
void gather_elements(Stream& stream, GatherElements<T> const& list) {
  gather_elements(stream, std::span<GatherElements<T> const>(&list, 1));
}

// to[positions[i]] = from[i].
struct ScatterElements {
  View<std::uint32_t const> from;       // (n)
  View<std::uint32_t const> positions;  // (n), distinct
  View<std::uint32_t> to;
};
void scatter_elements(Stream& stream, std::span<ScatterElements const> lists);
inline void scatter_elements(Stream& stream, ScatterElements const& list) { scatter_elements(stream, {&list, 1}); }

}  // namespace gpups::kernels
