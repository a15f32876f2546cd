// SPDX-License-Identifier: Apache-2.0
// Writes the selected elements of a vector, in order, when the threshold is known. On the host.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/runtime/launch.hpp"
#include "kernels/sparse/find_above_threshold.hpp"

namespace gpups::kernels {

// Selects elements whose magnitude has bits > `bits`. If these are fewer than `most`, also selects the first elements
// with exactly these bits. Only the first `most` of all these elements are selected.
struct Bound {
  std::uint32_t bits;
  std::size_t most;
};

// The destination of the selected elements.
struct SelectedElements {
  View<std::uint32_t> indices;
  View<float> values;
};

// Elements in the order of their indices: indices[i], or first + i if `indices` is null.
struct Candidates {
  std::uint32_t const* indices;
  std::uint32_t first;
  float const* values;
  std::size_t count;

  std::uint32_t index(std::size_t i) const {
    return indices == nullptr ? first + static_cast<std::uint32_t>(i) : indices[i];
  }
};

// Writes the selected elements of `pieces` pieces of at most kThresholdBlock candidates; piece(p) returns piece p.
// Calls done(index, x, keep) for each candidate. Returns the number of selected elements. Has no branch per element,
// since many elements are near the bound and branches could not be predicted.
template <class Piece, class Done>
std::size_t write_selected(HostExec ex, std::size_t pieces, Bound bound, SelectedElements out, Piece piece, Done done) {
  constexpr std::size_t kParts = 64;
  struct Count {
    std::size_t above = 0, equal = 0;
  };
  std::vector<Count> counts(pieces);
  auto const each_piece = [&](auto act) {
    ex.arena->blocks(kParts, [&](std::size_t part) {
      for (std::size_t p = part * pieces / kParts; p < (part + 1) * pieces / kParts; ++p) act(p);
    });
  };
  each_piece([&](std::size_t p) {
    Candidates const c = piece(p);
    std::uint32_t above = 0, equal = 0;
    for (std::size_t i = 0; i < c.count; ++i) {
      above += magnitude_bits(c.values[i]) > bound.bits ? 1 : 0;
      equal += magnitude_bits(c.values[i]) == bound.bits ? 1 : 0;
    }
    counts[p] = {above, equal};
  });
  std::size_t above = 0;
  for (Count const& count : counts) above += count.above;
  std::size_t equal_left = bound.most - std::min(bound.most, above);
  // From the counts of a piece to its position in the output, and the number of equal elements that it contributes.
  std::vector<std::size_t> start{0};
  for (Count& count : counts) {
    count.equal = std::min(count.equal, equal_left);
    equal_left -= count.equal;
    start.push_back(std::min(bound.most, start.back() + count.above + count.equal));
  }
  each_piece([&](std::size_t p) {
    std::uint32_t indices[kThresholdBlock + 1];
    float values[kThresholdBlock + 1];
    std::size_t count = 0, equal = counts[p].equal;
    std::size_t const most = start[p + 1] - start[p];
    Candidates const c = piece(p);
    for (std::size_t i = 0; i < c.count; ++i) {
      std::uint32_t const bits = magnitude_bits(c.values[i]);
      bool const ties = (bits == bound.bits) & (equal > 0);
      bool const keep = ((bits > bound.bits) | ties) & (count < most);
      equal -= ties ? 1 : 0;
      indices[count] = c.index(i);
      values[count] = c.values[i];
      count += keep ? 1 : 0;
      done(c.index(i), c.values[i], keep);
    }
    std::copy_n(indices, count, out.indices.data() + start[p]);
    std::copy_n(values, count, out.values.data() + start[p]);
  });
  return start.back();
}

}  // namespace gpups::kernels
