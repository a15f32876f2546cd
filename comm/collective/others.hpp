// SPDX-License-Identifier: Apache-2.0
// All other ranks of a mesh, in the order in which one should address them: its next first, so that not all ranks send
// to the same one at a time.
#pragma once

#include <vector>

#include "comm/collective/mesh.hpp"

namespace gpups::comm {

// me + 1, me + 2, ..., around the end.
inline std::vector<Rank> others(Mesh const& mesh) {
  auto const ranks = static_cast<std::uint32_t>(mesh.ranks());
  std::vector<Rank> others;
  for (std::uint32_t distance = 1; distance < ranks; ++distance) {
    others.push_back(Rank{(number(mesh.me()) + distance) % ranks});
  }
  return others;
}

}  // namespace gpups::comm
