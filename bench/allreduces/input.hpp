// SPDX-License-Identifier: Apache-2.0
// The input of each rank: a vector whose elements are present with a fixed probability, independently on each rank. An
// element is a function of seed, rank and index, so every rank can compute the expected sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/array.hpp"

namespace gpups::bench {

// Determines the inputs of all ranks.
struct InputOptions {
  std::size_t elements = 0;  // length of the vector
  double density = 1;        // fraction of the elements that are present
  std::uint64_t seed = 1;
};

// Returns an element of a rank: 0 if it is not present, otherwise a number other than 0 in (-1, 1).
float element_of(InputOptions const& options, int rank, std::size_t index);

// The input of one rank, as a dense array and as a list.
struct Input {
  Input(InputOptions const& options, int rank);

  double density;                      // of the inputs of all ranks
  Array<float> dense;                  // (elements)
  std::vector<std::uint32_t> indices;  // of the elements that are present, ascending
  std::vector<float> values;           // of the same elements
};

// Computes the expected sums over `ranks` ranks, added in double, of the elements from `first` on; 0 beyond the last
// element.
void expected_sums(InputOptions const& options, int ranks, std::size_t first, View<float> sums);

}  // namespace gpups::bench
