// SPDX-License-Identifier: Apache-2.0
// The algorithms that sum floats over ranks, by name, and which one is taken where the caller leaves it open.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/collective/dense.hpp"
#include "comm/collective/sparse.hpp"
#include "gpups/allreduce.hpp"

namespace gpups::comm {

struct Algorithm {
  AllreduceAlgorithm about;
  std::uint32_t formats;                        // that it has, a bit for each
  Task<> (*dense)(Mesh&, DenseSum);             // null where it sums sparse vectors only
  Task<SumVector> (*sparse)(Mesh&, SparseSum);  // null where it sums dense arrays only

  bool has(NumberFormat format) const { return (formats >> static_cast<int>(format) & 1) != 0; }
};

std::span<Algorithm const> algorithms();

// What is known of a sum before it is done, the same on all ranks.
struct SumShape {
  int ranks = 1;
  std::uint64_t elements = 0;
  bool sparse = false;
  std::uint64_t given = 0, given_most = 0;  // where sparse: elements that are not zero, of all ranks and of one of them
  NumberFormat format{};
};
// The algorithm that is taken for it.
Algorithm const& choose(SumShape const& shape);

// Throws Error where there is none of that name that can do this; null for "auto".
Algorithm const* algorithm_of(AllreduceOptions const& options, bool sparse);

}  // namespace gpups::comm
