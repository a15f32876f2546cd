// SPDX-License-Identifier: Apache-2.0
// Draws items that a user has not chosen, as negatives of training interactions.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/step/batch_sampler.hpp"
#include "trainer/tasks/interactions/interaction_set.hpp"

namespace gpups::trainer {

// Any thread.
class NegativeItems {
 public:
  // set: must outlive this object. negatives: of each interaction.
  NegativeItems(InteractionSet const& set, std::uint32_t negatives, std::uint64_t seed)
      : set_(set), negatives_(negatives), seed_(seed) {}

  // Returns, for each sample of a batch, the number of its item, and then those of its negatives: items that training
  // has and the user has not chosen there, each with the same probability. They depend on seed, epoch and sample only.
  std::vector<std::uint32_t> items(Batch const& batch) const;

 private:
  InteractionSet const& set_;
  std::uint32_t negatives_;
  std::uint64_t seed_;
};

}  // namespace gpups::trainer
