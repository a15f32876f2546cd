// SPDX-License-Identifier: Apache-2.0
// A factorization on one rank: a rating is the dot product of its row's and its column's factors.
//
// The loss is the squared error. A rating's gradient is a number, its slope, times a row of the other table: so the
// pulled rows are the sources of gradients, and nothing of their width is written.
#pragma once

#include <memory>
#include <vector>

#include "trainer/ratings/rating_set.hpp"
#include "trainer/task.hpp"

namespace gpups::trainer {

class RatingTask : public Task {
 public:
  // `set` must stay.
  RatingTask(RatingSet const& set, Config const& config, std::int64_t schedule_steps);

  std::vector<TableOptions> tables() const override;  // rows, columns
  std::unique_ptr<TaskStep> prepare(Stream& stream, Batch const& batch) override;
  Metrics wait_evaluate(Stream& stream, Store& store, std::string_view split) override;

  // What a step computes, reused from step to step.
  struct Computed {
    Array<float> slopes;
    Array<std::int64_t> losses;
  };

 private:
  RatingSet const& set_;
  Config const config_;
  std::int64_t schedule_steps_;
  Computed computed_;
};

}  // namespace gpups::trainer
