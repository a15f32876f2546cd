// SPDX-License-Identifier: Apache-2.0
// Selects how floats are summed over ranks: a pure function of the links' costs and of the sum's shape. A cost model
// says how long each algorithm should take.
#pragma once

#include <string>
#include <vector>

#include "comm/collectives/allreduce/algorithms.hpp"

namespace gpups::comm {

// An algorithm, and one of the formats that it has.
struct Selection {
  Algorithm const* algorithm = nullptr;
  WireFormat format = WireFormat::kFloat;
  double modelled_s = 0;
};
// "sparse_allgather as half", or "sparse_allgather" where numbers are sent as floats.
std::string name_of(Selection const& selection);

// All that can sum a vector of this shape, in the order of algorithms() and kNumberFormats. A format other than the
// shape's qualifies if its errors are no larger (is_as_exact()), and if the algorithm has the shape's format too:
// algorithms round at different places.
std::vector<Selection> candidates(LinkCosts const& costs, AllreduceShape const& shape);

// The candidate of least modelled time. Ranks call it with equal arguments and get equal results.
Selection select_algorithm(LinkCosts const& costs, AllreduceShape const& shape);

// Of the algorithms of comm/collectives/allreduce/dense.hpp, which make arrays of sparse vectors.
TimeOf time_of_reduce_scatter_allgather, time_of_recursive_doubling, time_of_fabric;
// Of those of comm/collectives/sparse/algorithms.hpp, and of making a list or an array of their result.
TimeOf time_of_sparse_allgather, time_of_ssar_recursive_doubling, time_of_ssar_split_allgather,
    time_of_dsar_split_allgather;

}  // namespace gpups::comm
