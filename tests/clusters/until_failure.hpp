// SPDX-License-Identifier: Apache-2.0
// What ranks do again and again, all of them, until one is lost.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::test {

// A rank's share in the job.
struct Member {
  Group const& group;
  Store& store;
  TableId table;
  Stream& stream;
};

inline constexpr std::size_t kRows = 20000, kDim = 64;

// Nothing of it ends by itself.
struct Work {
  std::string name;
  std::function<void(Member const&)> run;
  std::function<void()> before_join{};  // where something has to be there
};

// Says that the first calls are over: from now on one is always under way.
void say_going();

std::vector<Work> repeated_allreduces();
std::vector<Work> repeated_calls();

}  // namespace gpups::test
