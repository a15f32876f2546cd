// SPDX-License-Identifier: Apache-2.0
// The algorithms that sum floats over ranks, by name, and what each of them costs.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/collective/dense.hpp"
#include "comm/collective/link_model.hpp"
#include "comm/collective/sparse.hpp"
#include "gpups/allreduce.hpp"

namespace gpups::comm {

// What is known of a sum before it is done.
struct SumShape {
  int ranks = 1;
  std::uint64_t elements = 0;
  bool sparse = false;
  std::uint64_t given_most = 0;  // elements that are not zero on the rank that has most of them
  NumberFormat format{};         // the one that numbers may go in
  bool adds = false;             // what connects the ranks does, see Mesh::adds()
};

// Modelled seconds of a sum of this shape, whose numbers are sent in the shape's format.
using TimeOf = double(LinkModel const& costs, SumShape const& shape);

struct Algorithm {
  AllreduceAlgorithm about;
  std::uint32_t formats;  // that it has, a bit for each
  Task<> (*sum_array)(Mesh&, DenseSum);
  Task<SumVector> (*sum_vector)(Mesh&, SparseSum);
  // Whether ranks can use it; adds: see Mesh::adds().
  bool is_between(bool adds) const { return adds || !about.by_nccl; }

  TimeOf* time;

  bool has(NumberFormat format) const {
    auto const bit = static_cast<unsigned>(format);
    return bit < 32 && (formats >> bit & 1) != 0;
  }
};

std::span<Algorithm const> algorithms();

inline constexpr NumberFormat kNumberFormats[] = {NumberFormat::kFloat, NumberFormat::kHalf, NumberFormat::kBFloat,
                                                  NumberFormat::kE4M3,  NumberFormat::kE5M2, NumberFormat::kInt8,
                                                  NumberFormat::kInt4,  NumberFormat::kInt2};

// The options with the algorithm of the environment variable GPUPS_ALLREDUCE_ALGORITHM in place of "auto"; it sends
// floats if it lacks the format. Unchanged where the variable is not set or "auto". Throws Error for an unknown name.
AllreduceOptions with_environment(AllreduceOptions options);

// Throws Error where there is none of that name that has the format; null for "auto".
Algorithm const* algorithm_of(AllreduceOptions const& options);

}  // namespace gpups::comm
