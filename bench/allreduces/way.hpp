// SPDX-License-Identifier: Apache-2.0
// A way of summing a vector over the ranks, and the list of all ways.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/allreduces/input.hpp"
#include "gpups/gpups.hpp"

namespace gpups::bench {

// The arguments of ways. The ranks of the MPI job and of the group are the same.
struct Job {
  Group const& group;
  Store& store;
  Stream& stream;  // on the host
};

// One rank's side of a sum that is repeated.
class Way {
 public:
  virtual ~Way() = default;
  // Sums the input over the ranks; this call is timed. Collective.
  virtual void wait_sum() = 0;
  // Returns the result of the last sum: the whole sum, or a part of it.
  struct Result {
    View<float const> sums;  // the sums of any number of elements
    std::size_t first = 0;   // index of the first of them
  };
  virtual Result result() = 0;
  // Frees memory that only result() needs, so that all ways are timed with the same free memory.
  virtual void drop_result() {}
};

// A way with its name and properties.
struct WayEntry {
  std::string name;
  bool is_dense;     // its time does not depend on the density
  bool by_default;   // measured if no ways are named; its result is that of "auto"
  double error_max;  // of an element, which is a sum of a few numbers in (-1, 1)
  // `sums`, (elements), is memory for the result; other ways may use it between runs. All arguments outlive the way.
  std::function<std::unique_ptr<Way>(Job const&, Input const&, View<float> sums)> make;
  int runs_before_usual = 0;  // runs that differ from later ones; their bytes are not counted
};

// Returns all ways; the first is the reference for all others.
std::vector<WayEntry> const& ways();

std::unique_ptr<Way> make_mpi_dense(Job const&, Input const&, View<float> sums);
std::unique_ptr<Way> make_exact(Job const&, Input const&, View<float> sums);
// Returns the ways of Group: each algorithm, for dense arrays ("dense_") and for sparse vectors. From a density of one
// quarter on, those that send streams, and "auto", are given an array too; "auto_list" never is. "push" sums each slice
// on one rank only. Names that end with "_half" send numbers of 16 bits. "top_k_half" sums as many of the largest
// elements of each rank as are present with TopKAllreduce; its result is the applied sums plus the residuals.
std::vector<WayEntry> ways_of_group();

}  // namespace gpups::bench
