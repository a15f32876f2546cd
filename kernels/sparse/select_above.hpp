// SPDX-License-Identifier: Apache-2.0
// Selects the elements of a long vector whose magnitude reaches a bound, and computes the residual. On the host all
// elements are read once, or twice if more elements reach the bound than there is room for. On a GPU they are read
// twice.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// Selects the elements of x = values + residual, floats, with |x| >= bound or NaN, but no zeros; if there are more than
// fit, the first ones. After the call residual = x, and 0 at the selected elements. If the bound is the threshold that
// wait_top_k() returned some steps ago, about k elements are selected in one pass.
struct SelectAbove {
  View<float const> values;     // (n), n < 2^32 - 1
  View<float> residual = {};    // (n), or empty: x = values
  float bound;                  // not NaN
  View<std::uint32_t> indices;  // (room), ascending
  View<float> kept;             // (room), x at these indices
};

// Returns the number of selected elements. Blocks until `stream` is done.
std::size_t wait_select_above(Stream& stream, SelectAbove const& arguments);

// Sets bit i % 32 of bitmap[i / 32] for each i of the indices, and clears all others. A bitmap is smaller than a list
// if more than one element in 32 is selected.
struct IndicesToBitmap {
  View<std::uint32_t const> indices;  // (kept), distinct, ascending
  View<std::uint32_t> bitmap;         // ((n + 31) / 32), where n is larger than all indices
};
void indices_to_bitmap(Stream& stream, IndicesToBitmap const& arguments);

// into[indices[i]] += kept[i]: adds the selected elements of a vector to another vector.
struct ScatterAdd {
  View<std::uint32_t const> indices;  // (kept), distinct
  View<float const> kept;             // (kept)
  View<float> into;                   // (n)
};
void scatter_add(Stream& stream, ScatterAdd const& arguments);

}  // namespace gpups::kernels
