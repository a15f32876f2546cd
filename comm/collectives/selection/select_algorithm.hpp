// SPDX-License-Identifier: Apache-2.0
// Selects the algorithm of a floating-point allreduce: a pure function of the link costs and of the shape of the
// allreduce. A cost model computes the time of each algorithm.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/collectives/allreduce/algorithms.hpp"
#include "gpups/array.hpp"

namespace gpups::comm {

// Returns the estimated number of nonzero elements of `values`, (n). Reads about 2000 elements, at positions that
// depend on the seed, in one to two microseconds. Exact if there are no more elements than that. REQUIRES: values on
// the host.
std::uint64_t estimate_nonzeros(View<float const> values, std::uint64_t seed);

// An algorithm, and the wire format that it uses.
struct Selection {
  Algorithm const* algorithm = nullptr;
  WireFormat format = WireFormat::kFloat;
  double modelled_s = 0;
};
// Returns "sparse_allgather as half", or "sparse_allgather" if values are sent as floats.
std::string name_of(Selection const& selection);

// Returns all algorithms and formats that can sum vectors of this shape, in the order of algorithms() and
// kNumberFormats. A format other than that of the shape qualifies if its errors are no larger (is_as_exact()) and if
// the algorithm supports the format of the shape too, because algorithms round at different points.
std::vector<Selection> candidates(LinkCosts const& costs, AllreduceShape const& shape);

// Returns the candidate of least modelled time. Equal arguments on all ranks give equal results.
Selection select_algorithm(LinkCosts const& costs, AllreduceShape const& shape);

// Times of the algorithms in comm/collectives/allreduce/dense.hpp, including the conversion of sparse vectors to
// arrays.
TimeOf time_of_reduce_scatter_allgather, time_of_recursive_doubling, time_of_fabric;
// Times of the algorithms in comm/collectives/sparse/algorithms.hpp, including the conversion of their result to a list
// or an array.
TimeOf time_of_sparse_allgather, time_of_ssar_recursive_doubling, time_of_ssar_split_allgather,
    time_of_dsar_split_allgather;

}  // namespace gpups::comm
