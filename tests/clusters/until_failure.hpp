// SPDX-License-Identifier: Apache-2.0
// Kinds of work that all ranks repeat until one is lost.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::test {

// The objects of one rank.
struct Member {
  Group const& group;
  Store& store;
  TableId table;
  Stream& stream;
};

inline constexpr std::size_t kRows = 20000, kDim = 64;

// A kind of work. run() ends only with an exception.
struct Work {
  std::string name;
  std::function<void(Member const&)> run;
  std::function<void()> before_join{};  // preparation, for some kinds
};

// Prints that the first calls are over: from now on one is always in flight.
void print_going();

std::vector<Work> repeated_allreduces();
std::vector<Work> repeated_calls();

}  // namespace gpups::test
