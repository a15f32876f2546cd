// SPDX-License-Identifier: Apache-2.0
// Link costs and shapes of allreduces for tests of the selection.
#pragma once

#include "comm/collectives/allreduce/algorithms.hpp"

namespace gpups::comm {

// Returns costs of which only `cost` is large.
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
