// SPDX-License-Identifier: Apache-2.0
// Exchanges of sparse streams between all ranks: the parts of which the algorithms consist.
#pragma once

#include <vector>

#include "comm/collectives/sparse/encode_slice.hpp"

namespace gpups::comm {

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
