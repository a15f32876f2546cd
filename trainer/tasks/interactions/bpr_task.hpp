// SPDX-License-Identifier: Apache-2.0
// Bayesian personalized ranking on one rank: the score of a user and an item is the dot product of their rows, and an
// item that the user chose should have a larger score than items that are drawn; see kernels::PairwiseRanking.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/step/batch_sampler.hpp"
#include "trainer/step/task.hpp"
#include "trainer/tasks/interactions/interaction_set.hpp"
#include "trainer/tasks/interactions/recommender.hpp"

namespace gpups::trainer {

// Draws items that a user has not chosen, as negatives of training interactions.

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

// The task of one rank.
class BprTask : public Recommender {
 public:
  // `set` must outlive this object. schedule_steps: see TaskContext.
  BprTask(InteractionSet const& set, Config const& config, std::int64_t schedule_steps);

  std::unique_ptr<TaskStep> prepare(Stream& stream, Batch const& batch) override;

  // Results of a step; the arrays are reused in later steps.
  struct BprResults {
    Matrix<float> user_gradients;
    Array<std::uint32_t> users_of_items;
    Array<float> slopes;
    Array<std::int64_t> losses;
  };

 private:
  std::uint32_t negatives_of_each_;
  NegativeItems negatives_;
  BprResults computed_;
};

// Returns the bytes that a step of `samples` interactions needs for its results.
std::uint64_t bpr_step_bytes(Config const& config, std::size_t samples);

}  // namespace gpups::trainer
