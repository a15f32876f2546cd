// SPDX-License-Identifier: Apache-2.0
// Algorithms that sum dense arrays of floats, and the inputs of all algorithms. Each except allreduce_by_fabric() adds
// in an order that depends only on ranks and sizes, so every rank gets equal bits in every run. When an algorithm has
// ended, it no longer uses the arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/collectives/co_task.hpp"
#include "comm/collectives/communicator.hpp"
#include "gpups/allreduce.hpp"

namespace gpups::comm {

// Elements of a chunk. The overhead of a message is small compared with that of its data, and a chunk is added while
// others travel. (Measured on two cores with shared memory and TCP; with smaller chunks TCP takes 50 % longer.)
inline constexpr std::size_t kChunkElements = std::size_t{1} << 19;

// The input and output of a dense algorithm.
struct DenseAllreduce {
  View<float> values;                      // (n): receives the sums
  View<float const> terms = values;        // (n): this rank's input
  std::shared_ptr<void const> keep;        // owns both
  std::size_t chunk = kChunkElements;      // elements; equal on all ranks
  WireFormat format = WireFormat::kFloat;  // wire format; the algorithms below support only this one
};

// Each rank sums one slice and sends the sums to all ranks, chunk by chunk: one chunk is summed while others travel. A
// rank sends 8 * (ranks - 1) / ranks bytes per element, in 2 messages per chunk and rank, and keeps a few chunks of
// each rank in memory. The terms of a slice are added in the order of the ranks, starting with the owner of the slice.
CoTask<> reduce_scatter_allgather(Communicator& comm, DenseAllreduce sum);

// Pairs of ranks at distances 1, 2, 4, ... exchange and add all that they have. A rank sends 4 log2(ranks) bytes per
// element, in log2(ranks) messages. If the number of ranks is not a power of two, some ranks take part through a
// partner, which takes two more messages. For arrays so small that only the number of messages matters.
CoTask<> recursive_doubling(Communicator& comm, DenseAllreduce sum);

// The device fabric sums, in an order of its choice that is the same on all ranks. REQUIRES: comm.can_allreduce().
CoTask<> allreduce_by_fabric(Communicator& comm, DenseAllreduce sum);

// Each rank sends its whole array to every other rank and adds all arrays in the order of the ranks. For short arrays,
// see fits_eager(); no algorithm is selected for these.
CoTask<> eager_allreduce(Communicator& comm, DenseAllreduce sum);

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
