// SPDX-License-Identifier: Apache-2.0
// The algorithms that sum floats over ranks, by name, and what each of them costs.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/collectives/allreduce/dense.hpp"
#include "comm/collectives/selection/link_costs.hpp"
#include "comm/collectives/sparse/sparse.hpp"
#include "gpups/allreduce.hpp"

namespace gpups::comm {

// What is known of a sum before it is done.
struct AllreduceShape {
  int ranks = 1;
  std::uint64_t elements = 0;
  bool sparse = false;
  std::uint64_t nonzeros_max = 0;  // elements that are not zero on the rank that has most of them
  WireFormat format{};             // the one that numbers may go in
  bool can_allreduce = false;      // what connects the ranks does, see Communicator::adds()
};

// Modelled seconds of a sum of this shape, whose numbers are sent in the shape's format.
using TimeOf = double(LinkCosts const& costs, AllreduceShape const& shape);

struct Algorithm {
  AllreduceAlgorithm info;
  std::uint32_t formats;  // that it has, a bit for each
  CoTask<> (*sum_array)(Communicator&, DenseAllreduce);
  CoTask<ReducedVector> (*sum_vector)(Communicator&, SparseAllreduce);
  // Whether ranks can use it; adds: see Communicator::adds().
  bool is_available(bool can_allreduce) const { return can_allreduce || !info.by_nccl; }

  TimeOf* time;

  bool has(WireFormat format) const {
    auto const bit = static_cast<unsigned>(format);
    return bit < 32 && (formats >> bit & 1) != 0;
  }
};

std::span<Algorithm const> algorithms();

inline constexpr WireFormat kNumberFormats[] = {WireFormat::kFloat, WireFormat::kHalf, WireFormat::kBFloat16,
                                                WireFormat::kE4M3,  WireFormat::kE5M2, WireFormat::kInt8,
                                                WireFormat::kInt4,  WireFormat::kInt2};

// The options with the algorithm of the environment variable GPUPS_ALLREDUCE_ALGORITHM in place of "auto"; it sends
// floats if it lacks the format. Unchanged where the variable is not set or "auto". Throws Error for an unknown name.
AllreduceOptions with_environment(AllreduceOptions options);

// Throws Error where there is none of that name that has the format; null for "auto".
Algorithm const* algorithm_of(AllreduceOptions const& options);

}  // namespace gpups::comm
