// SPDX-License-Identifier: Apache-2.0
// Algorithms that sum sparse vectors.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/collectives/allreduce/dense.hpp"
#include "comm/collectives/co_task.hpp"
#include "comm/collectives/communicator.hpp"
#include "gpups/allreduce.hpp"

namespace gpups::comm {

// A rank's vector, and how numbers go.
struct SparseAllreduce {
  SparseView vector;                 // on the communicator's device
  std::shared_ptr<void const> keep;  // owns it
  WireFormat format = WireFormat::kFloat;
};

// From this density on vectors are held as arrays, which take up to twice a list's memory then: within a machine going
// through indices takes longer than the bytes that it saves, and what is slower sends streams of either. Sums that are
// as dense are arrays.
inline constexpr double kDenseFromDensity = .25;

// Makes an array of the vector, and sums it as one.
CoTask<ReducedVector> allreduce_densified(Communicator& comm, SparseAllreduce sum,
                                          CoTask<> (*sum_dense)(Communicator&, DenseAllreduce));
template <CoTask<> (*SumDense)(Communicator&, DenseAllreduce)>
CoTask<ReducedVector> as_dense(Communicator& comm, SparseAllreduce sum) {
  return allreduce_densified(comm, std::move(sum), SumDense);
}

}  // namespace gpups::comm
