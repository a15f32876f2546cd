// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/interactions/negative_items.hpp"

#include "trainer/base/random.hpp"

namespace gpups::trainer {
namespace {

// Returns the item with `rank` smaller ones among those that are not in `chosen`, which is in ascending order.
std::uint32_t not_chosen(std::span<Interaction const> chosen, std::uint32_t rank) {
  std::size_t low = 0, high = chosen.size();  // so many chosen items are smaller
  while (low < high) {
    std::size_t const middle = (low + high) / 2;
    (chosen[middle].item - middle <= rank ? low = middle + 1 : high = middle);
  }
  return rank + static_cast<std::uint32_t>(low);
}

}  // namespace

std::vector<std::uint32_t> NegativeItems::items(Batch const& batch) const {
  std::vector<std::uint32_t> items;
  items.reserve(batch.samples.size() * (1 + negatives_));
  for (std::uint64_t const sample : batch.samples) {
    Interaction const chosen = set_.train[sample];
    items.push_back(chosen.item);
    std::span<Interaction const> const all = set_.train.of(chosen.user);
    RandomBits const random(seed_, batch.epoch, sample);
    for (std::uint32_t k = 0; k < negatives_; ++k) {
      items.push_back(not_chosen(all, static_cast<std::uint32_t>(below(set_.known_items - all.size(), random(k)))));
    }
  }
  return items;
}

}  // namespace gpups::trainer
