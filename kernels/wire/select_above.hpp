// SPDX-License-Identifier: Apache-2.0
// The elements of a long vector whose magnitude reaches a bound, and what is left of the vector. On the host all
// elements are read once; twice where more reach the bound than there is room for, and on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// Keeps the elements of x = values + residual, floats, with |x| >= bound or NaN, but no zeros: the first of them that
// there is room for. The others wait in the residual: after the call residual = x, and 0 where x was kept. With the
// threshold that wait_top_k() returned some steps ago as the bound, about k are kept at the price of one pass.
struct SelectAbove {
  View<float const> values;     // (n), n < 2^32 - 1
  View<float> residual = {};    // (n), or empty: x = values
  float bound;                  // not NaN
  View<std::uint32_t> indices;  // (room), ascending
  View<float> kept;             // (room), x of these
};

// Returns how many are kept. Waits for `stream`.
std::size_t wait_select_above(Stream& stream, SelectAbove const& arguments);

// Bit i % 32 of bitmap[i / 32] is set for each i among the indices, all others are not: smaller than a list where more
// than one in 32 is kept.
struct IndicesToBitmap {
  View<std::uint32_t const> indices;  // (kept), distinct, ascending
  View<std::uint32_t> bitmap;         // ((n + 31) / 32), n being larger than all indices
};
void indices_to_bitmap(Stream& stream, IndicesToBitmap const& arguments);

// into[indices[i]] += kept[i]: what has been kept of a vector is added to another.
struct ScatterAdd {
  View<std::uint32_t const> indices;  // (kept), distinct
  View<float const> kept;             // (kept)
  View<float> into;                   // (n)
};
void scatter_add(Stream& stream, ScatterAdd const& arguments);

}  // namespace gpups::kernels
