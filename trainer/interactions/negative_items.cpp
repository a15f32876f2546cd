// SPDX-License-Identifier: Apache-2.0
#include "trainer/interactions/negative_items.hpp"

#include "trainer/random.hpp"

namespace gpups::trainer {

std::vector<std::uint32_t> NegativeItems::items(Batch const& batch) const {
  std::vector<std::uint32_t> items;
  items.reserve(batch.samples.size() * (1 + negatives_));
  for (std::uint64_t const sample : batch.samples) {
    Interaction const chosen = set_.train[sample];
    items.push_back(chosen.item);
    RandomBits const random(seed_, batch.epoch, sample);
    std::uint64_t draws = 0;
    for (std::uint32_t k = 0; k < negatives_; ++k) {
      Interaction drawn = chosen;
      while (set_.train.has(drawn)) drawn.item = static_cast<std::uint32_t>(below(set_.known_items, random(draws++)));
      items.push_back(drawn.item);
    }
  }
  return items;
}

}  // namespace gpups::trainer
