// SPDX-License-Identifier: Apache-2.0
// Links and sums for tests of what is chosen.
#pragma once

#include "comm/collective/algorithms.hpp"

namespace gpups::comm {

// A network on which nothing but what `cost` says takes long.
inline LinkModel only(double LinkModel::*cost) {
  LinkModel model;
  for (auto const each : kLinkCosts) model.*each = 1e-15;
  model.*cost = 1e-6;
  return model;
}

inline SumShape dense(std::uint64_t elements, int ranks = 4) {
  return {.ranks = ranks, .elements = elements, .given_most = elements};
}
inline SumShape sparse(std::uint64_t elements, std::uint64_t given, int ranks = 4) {
  return {.ranks = ranks, .elements = elements, .sparse = true, .given_most = given};
}

}  // namespace gpups::comm
