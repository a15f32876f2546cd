// SPDX-License-Identifier: Apache-2.0
// A part of a rank's terms as a stream.
#pragma once

#include <vector>

#include "comm/collective/stream_sums.hpp"
#include "kernels/wire/encode_stream.hpp"

namespace gpups::comm {

template <class T>
View<T> part_of(View<T> residual, Slice range) {
  return residual.empty() ? residual : residual.slice(range.first, range.size);
}

template <class T>
Bytes encode_part(StreamTerms<T>& terms, Slice range) {
  View<T> const residual = part_of(terms.residual, range);
  if (!terms.array.empty()) {
    View<T const> const values = terms.array.slice(range.first, range.size);
    return kernels::encode<T>(terms.stream, kernels::EncodeDense<T>{values, range.first, terms.form, residual});
  }
  return kernels::encode<T>(terms.stream, {terms.indices, terms.values, range.first, range.size, terms.form, residual});
}

inline std::vector<Slice> slices_of(std::uint64_t size, int ranks) {
  std::vector<Slice> slices;
  for (int r = 0; r < ranks; ++r) slices.push_back(slice_of(size, ranks, Rank(r)));
  return slices;
}

}  // namespace gpups::comm
