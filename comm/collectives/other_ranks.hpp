// SPDX-License-Identifier: Apache-2.0
// All other ranks of a communicator, in the order in which one should address them: its next first, so that not all
// ranks send to the same one at a time.
#pragma once

#include <vector>

#include "comm/collectives/communicator.hpp"

namespace gpups::comm {

// me + 1, me + 2, ..., around the end.
inline std::vector<Rank> other_ranks(Communicator const& comm) {
  auto const ranks = static_cast<std::uint32_t>(comm.ranks());
  std::vector<Rank> others;
  for (std::uint32_t distance = 1; distance < ranks; ++distance) {
    others.push_back(Rank{(number(comm.me()) + distance) % ranks});
  }
  return others;
}

}  // namespace gpups::comm
