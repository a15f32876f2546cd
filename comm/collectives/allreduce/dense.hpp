// SPDX-License-Identifier: Apache-2.0
// Algorithms that sum arrays of floats. Each but allreduce_by_fabric() adds in an order that ranks and sizes decide
// alone, so that every rank gets the same bits in every run. When one has ended, nobody reads the arrays any more.
#pragma once

#include <cstddef>
#include <memory>

#include "comm/collectives/co_task.hpp"
#include "comm/collectives/communicator.hpp"
#include "gpups/allreduce.hpp"

namespace gpups::comm {

// Elements of the pieces that go on their way one by one: a message costs little beside its data, and while one piece
// is added others travel. (Measured on two cores with shared memory and TCP; smaller ones cost half as much again over
// TCP.)
inline constexpr std::size_t kChunkElements = std::size_t{1} << 19;

struct DenseAllreduce {
  View<float> values;                      // (n): the sums
  View<float const> terms = values;        // (n): this rank's
  std::shared_ptr<void const> keep;        // owns both
  std::size_t chunk = kChunkElements;      // the same on all ranks
  WireFormat format = WireFormat::kFloat;  // how numbers go; those below have this one only
};

// Each rank adds up one slice and sends its sums to all, piece by piece: what is added and what is sent of both goes on
// at the same time. A rank sends 8 * (ranks - 1) / ranks bytes for each element in 2 messages per piece and rank, and
// keeps a few pieces of each rank. Adds in the order of the ranks, from the slice's own on and around.
CoTask<> reduce_scatter_allgather(Communicator& comm, DenseAllreduce sum);

// Pairs of ranks at distances 1, 2, 4, ... exchange all that they have. A rank sends 4 log2(ranks) bytes for each
// element in log2(ranks) messages; with a number of ranks that is no power of two some do so for others, which takes
// two more. For arrays so small that only the number of messages counts.
CoTask<> recursive_doubling(Communicator& comm, DenseAllreduce sum);

// What connects the ranks' devices adds up, in an order of its own that is the same on all ranks. REQUIRES:
// communicator.adds().
CoTask<> allreduce_by_fabric(Communicator& comm, DenseAllreduce sum);

// Every rank sends all that it has to every other, and adds up in the order of the ranks. For arrays that are short,
// see fits_eager(): nobody need choose then.
CoTask<> eager_allreduce(Communicator& comm, DenseAllreduce sum);

}  // namespace gpups::comm
