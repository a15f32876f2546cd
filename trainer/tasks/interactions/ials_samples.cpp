// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/interactions/ials_samples.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace gpups::trainer {

Interactions IalsSamples::transposed(InteractionSet const& set) {
  std::vector<Interaction> pairs;
  pairs.reserve(set.train.size());
  for (Interaction const& pair : set.train.pairs()) pairs.push_back({pair.item, pair.user});
  std::stable_sort(pairs.begin(), pairs.end(), [](auto const& a, auto const& b) { return a.user < b.user; });
  return {std::move(pairs), set.known_items};
}

}  // namespace gpups::trainer
