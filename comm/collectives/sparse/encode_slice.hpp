// SPDX-License-Identifier: Apache-2.0
// Encodes a slice of a rank's input as a sparse stream.
#pragma once

#include <vector>

#include "comm/collectives/sparse/algorithms.hpp"
#include "kernels/sparse/encode_stream.hpp"

namespace gpups::comm {

// Returns the slice of a residual; empty if there is no residual.
template <class T>
View<T> slice_or_empty(View<T> residual, Slice range) {
  return residual.empty() ? residual : residual.slice(range.first, range.size);
}

// Returns the elements of `range` as a stream; losses go to the residual. Throws Error if indices do not ascend.
template <class T>
Bytes encode_slice(StreamInput<T>& terms, Slice range) {
  View<T> const residual = slice_or_empty(terms.residual, range);
  if (!terms.array.empty()) {
    View<T const> const values = terms.array.slice(range.first, range.size);
    return kernels::encode<T>(terms.stream, kernels::EncodeDense<T>{values, range.first, terms.form, residual});
  }
  return kernels::encode<T>(terms.stream, {terms.indices, terms.values, range.first, range.size, terms.form, residual});
}

// Returns the slices of all ranks, by rank.
inline std::vector<Slice> slices_of_ranks(std::uint64_t size, int ranks) {
  std::vector<Slice> slices;
  for (int r = 0; r < ranks; ++r) slices.push_back(slice_of(size, ranks, Rank(r)));
  return slices;
}

}  // namespace gpups::comm
