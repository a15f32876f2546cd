// SPDX-License-Identifier: Apache-2.0
// A way of summing a vector over the ranks, and those that there are.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/allreduces/input.hpp"
#include "gpups/gpups.hpp"

namespace gpups::bench {

// What ways are given. The same ranks are an MPI job and a group.
struct Job {
  Group const& group;
  Store& store;
  Stream& stream;  // of the host
};

// One sum, again and again; a rank's side of it.
class Way {
 public:
  virtual ~Way() = default;
  // Sums the input over the ranks: what is timed. Collective.
  virtual void wait_result() = 0;
  // What the last one came to: the whole sum, or a part of it.
  struct Result {
    View<float const> sums;  // (any)
    std::size_t first = 0;   // of all elements
  };
  virtual Result result() = 0;
  // Gives up memory that only result() needs, so that every way is timed with the same memory free.
  virtual void drop_result() {}
};

struct WayEntry {
  std::string name;
  bool is_dense;     // its time does not depend on the density
  bool by_default;   // measured where nobody asks for ways by name: it does what "auto" does
  double error_max;  // of an element that is the sum of a few numbers in (-1, 1)
  // `sums`, (elements), is memory for what comes of it; another way may use it meanwhile. All outlive the way.
  std::function<std::unique_ptr<Way>(Job const&, Input const&, View<float> sums)> make;
  int runs_before_usual = 0;  // that are not like those after them: their bytes are not counted
};

// The first is the one that all others are compared with.
std::vector<WayEntry> const& ways();

std::unique_ptr<Way> make_mpi_dense(Job const&, Input const&, View<float> sums);
std::unique_ptr<Way> make_exact(Job const&, Input const&, View<float> sums);
// Of each algorithm, for dense arrays ("dense_") and for sparse vectors. From a density of one quarter on those that
// send streams, and "auto", are given an array too; "auto_list" never is. "push" sums each slice on one rank only.
// Names that end with "_half" send numbers of 16 bits. "top_k_half" sums the largest elements of ranks, as many as are
// there, by TopKAllreduce: all others wait, and its result is what has been applied and what waits.
std::vector<WayEntry> ways_of_group();

}  // namespace gpups::bench
