// SPDX-License-Identifier: Apache-2.0
// Links and sums for tests of what is chosen.
#pragma once

#include "comm/collectives/allreduce/algorithms.hpp"

namespace gpups::comm {

// A network on which nothing but what `cost` says takes long.
inline LinkCosts only(double LinkCosts::*cost) {
  LinkCosts model;
  for (auto const each : kLinkCostMembers) model.*each = 1e-15;
  model.*cost = 1e-6;
  return model;
}

inline AllreduceShape dense(std::uint64_t elements, int ranks = 4) {
  return {.ranks = ranks, .elements = elements, .nonzeros_max = elements};
}
inline AllreduceShape sparse(std::uint64_t elements, std::uint64_t given, int ranks = 4) {
  return {.ranks = ranks, .elements = elements, .sparse = true, .nonzeros_max = given};
}

}  // namespace gpups::comm
