// SPDX-License-Identifier: Apache-2.0
// The algorithms of floating-point allreduces, with their names and modelled times.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/collectives/allreduce/dense.hpp"
#include "comm/collectives/selection/link_costs.hpp"
#include "gpups/allreduce.hpp"

namespace gpups::comm {

// What is known about an allreduce before it runs.
struct AllreduceShape {
  int ranks = 1;
  std::uint64_t elements = 0;
  bool sparse = false;             // the input is a sparse vector
  std::uint64_t nonzeros_max = 0;  // nonzero elements of the rank that has the most
  WireFormat format{};             // the wire format that may be used
  bool can_allreduce = false;      // see Communicator::can_allreduce()
};

// Returns the modelled seconds of an allreduce of this shape, whose values are sent in the format of the shape.
using TimeOf = double(LinkCosts const& costs, AllreduceShape const& shape);

// An algorithm, and what it supports.
struct Algorithm {
  AllreduceAlgorithm info;
  std::uint32_t formats;  // one bit for each supported wire format
  CoTask<> (*sum_array)(Communicator&, DenseAllreduce);
  CoTask<ReducedVector> (*sum_vector)(Communicator&, SparseAllreduce);
  // Returns whether the ranks can use the algorithm. can_allreduce: see Communicator::can_allreduce().
  bool is_available(bool can_allreduce) const { return can_allreduce || !info.by_nccl; }

  TimeOf* time;

  // Returns whether the algorithm supports the format.
  bool has(WireFormat format) const {
    auto const bit = static_cast<unsigned>(format);
    return bit < 32 && (formats >> bit & 1) != 0;
  }
};

// Returns all algorithms.
std::span<Algorithm const> algorithms();

inline constexpr WireFormat kNumberFormats[] = {WireFormat::kFloat, WireFormat::kHalf, WireFormat::kBFloat16,
                                                WireFormat::kInt8,  WireFormat::kInt4, WireFormat::kInt2};

// Returns the options with "auto" replaced by the algorithm in the environment variable GPUPS_ALLREDUCE_ALGORITHM; the
// format becomes float if that algorithm does not support it. Returns them unchanged if the variable is not set or is
// "auto". Throws Error for an unknown name.
AllreduceOptions with_environment(AllreduceOptions options);

// Returns the algorithm that the options set; null for "auto". Throws Error if it is unknown or does not support the
// format.
Algorithm const* algorithm_of(AllreduceOptions const& options);

}  // namespace gpups::comm
