// SPDX-License-Identifier: Apache-2.0
// The input of algorithms that sum sparse vectors, and the conversion of sparse vectors to arrays.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/collectives/allreduce/dense.hpp"
#include "comm/collectives/co_task.hpp"
#include "comm/collectives/communicator.hpp"
#include "gpups/allreduce.hpp"

namespace gpups::comm {

// A rank's vector, and the wire format of its values.
struct SparseAllreduce {
  SparseView vector;                 // on the communicator's device
  std::shared_ptr<void const> keep;  // owns it
  WireFormat format = WireFormat::kFloat;
};

// From this density on a sum is returned as an array, which takes up to twice the memory of a list. Within a machine,
// reading indices takes longer than the bytes that a list saves; over slower links both are sent as streams.
inline constexpr double kDenseFromDensity = .25;

// Converts the vector to an array and sums it with `sum_dense`.
CoTask<ReducedVector> allreduce_densified(Communicator& comm, SparseAllreduce sum,
                                          CoTask<> (*sum_dense)(Communicator&, DenseAllreduce));
template <CoTask<> (*SumDense)(Communicator&, DenseAllreduce)>
CoTask<ReducedVector> as_dense(Communicator& comm, SparseAllreduce sum) {
  return allreduce_densified(comm, std::move(sum), SumDense);
}

}  // namespace gpups::comm
