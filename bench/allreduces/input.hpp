// SPDX-License-Identifier: Apache-2.0
// What each rank gives to a sum: a vector of which each element is there with the same probability, on each rank for
// itself. An element is a function of seed, rank and index, so that any rank can say what any sum must be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/array.hpp"

namespace gpups::bench {

struct InputOptions {
  std::size_t elements = 0;  // of the vector
  double density = 1;        // share of them that is there
  std::uint64_t seed = 1;
};

// Of this element, on this rank; 0 where it is not there. In (-1, 1), and never 0 where it is.
float element_of(InputOptions const& options, int rank, std::size_t index);

// A rank's part, in both representations.
struct Input {
  Input(InputOptions const& options, int rank);

  double density;                      // of all ranks' inputs
  Array<float> dense;                  // (elements)
  std::vector<std::uint32_t> indices;  // of those that are there; they rise
  std::vector<float> values;           // of the same
};

// sums: what `ranks` ranks sum to, added in double, of as many elements from `first` on; 0 beyond the last.
void allreduce_by_fabric_(InputOptions const& options, int ranks, std::size_t first, View<float> sums);

}  // namespace gpups::bench
