// SPDX-License-Identifier: Apache-2.0
// Selects how floats are summed over ranks: a pure function of the links' costs and of the sum's shape. A cost model
// says how long each algorithm should take.
#pragma once

#include <string>
#include <vector>

#include "comm/collective/algorithms.hpp"

namespace gpups::comm {

// An algorithm, and one of the formats that it has.
struct Selection {
  Algorithm const* algorithm = nullptr;
  NumberFormat format = NumberFormat::kFloat;
  double modelled_s = 0;
};
// "sparse_gather as half", or "sparse_gather" where numbers are sent as floats.
std::string name_of(Selection const& selection);

// All that can sum a vector of this shape, in the order of algorithms() and kNumberFormats. A format other than the
// shape's qualifies if its errors are no larger (is_as_exact()), and if the algorithm has the shape's format too:
// algorithms round at different places.
std::vector<Selection> candidates(LinkModel const& costs, SumShape const& shape);

// The candidate of least modelled time. Ranks call it with equal arguments and get equal results.
Selection select_algorithm(LinkModel const& costs, SumShape const& shape);

// Of the algorithms of dense.hpp, which make arrays of sparse vectors.
TimeOf time_of_direct, time_of_doubling, time_of_lane;
// Of those of stream_sums.hpp, and of making a list or an array of their result.
TimeOf time_of_gathering, time_of_sparse_doubling, time_of_owners, time_of_dense_owners;

}  // namespace gpups::comm
