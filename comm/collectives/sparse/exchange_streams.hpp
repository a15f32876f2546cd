// SPDX-License-Identifier: Apache-2.0
// What the sums of sparse streams are made of: exchanges between all ranks.
#pragma once

#include <vector>

#include "comm/collectives/sparse/encode_slice.hpp"

namespace gpups::comm {

// Each rank's stream to all ranks: those of all, in order of the ranks. ranges: of each rank's.
CoTask<Streams> allgather_streams(Communicator& comm, Bytes mine, std::vector<Slice> ranges);

// Each rank's elements of each slice to the rank that owns it: those of this rank's slice, in order of the ranks.
template <class T>
CoTask<Streams> alltoall_streams(Communicator& comm, StreamInput<T> terms);

// The sum of streams of one range. What its values lose goes into the residual.
template <class T>
Bytes sum_streams(Communicator const& comm, Streams const& streams, StreamInput<T>& terms, View<T> residual);

}  // namespace gpups::comm
