// SPDX-License-Identifier: Apache-2.0
// Sums of arrays of floats by the algorithms over streams: only those elements of theirs are sent that are not 0. A sum
// that is 0 is +0.
#pragma once

#include "comm/collectives/allreduce/dense.hpp"
#include "comm/collectives/sparse/sparse_vector_allreduce.hpp"

namespace gpups::comm {

// By one of the algorithms of algorithms.hpp. A GPU's arrays are summed by the host. REQUIRES:
// has_stream_format(sum.format).
CoTask<> allreduce_array_as_stream(Communicator& comm, DenseAllreduce sum, StreamAlgorithm algorithm);
template <StreamAlgorithm Algorithm>
CoTask<> array_as_streams(Communicator& comm, DenseAllreduce sum) {
  return allreduce_array_as_stream(comm, std::move(sum), Algorithm);
}

// By dsar_split_allgather(): terms go as they are, sums in the format, which may be any.
CoTask<> dsar_array(Communicator& comm, DenseAllreduce sum);

}  // namespace gpups::comm
