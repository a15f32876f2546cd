// SPDX-License-Identifier: Apache-2.0
// Exchanges of sparse streams between all ranks: the parts of which the algorithms consist.
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

// Sends a stream to all ranks. Returns the streams of all ranks, in the order of the ranks. ranges: of the stream of
// each rank.
CoTask<Streams> allgather_streams(Communicator& comm, Bytes mine, std::vector<Slice> ranges);

// Sends the elements of each slice to the owner of the slice. Returns the streams of this rank's slice, in the order of
// the ranks.
template <class T>
CoTask<Streams> alltoall_streams(Communicator& comm, StreamInput<T> terms);

// Returns the sum of streams of one range, encoded. Rounding errors go to `residual`. Throws PeerError if a stream is
// invalid.
template <class T>
Bytes sum_streams(Communicator const& comm, Streams const& streams, StreamInput<T>& terms, View<T> residual);

}  // namespace gpups::comm
