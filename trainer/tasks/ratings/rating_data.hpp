// SPDX-License-Identifier: Apache-2.0
// The data of the rating task: a sparse matrix that is factorized.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/step/task.hpp"
#include "trainer/tasks/ratings/rating_predictor.hpp"
#include "trainer/tasks/ratings/rating_set.hpp"

namespace gpups::trainer {

// A set of ratings as Data.
class RatingData : public Data {
 public:
  // Adds a notice with the range of the ratings, and others if they are all equal, or differ in few of the digits that
  // they have in 32 bits.
  explicit RatingData(RatingSet set);

  RatingSet const& set() const { return set_; }

  std::uint64_t samples() const override { return set_.train.size(); }
  std::string_view noun() const override { return "rating"; }
  bool has(std::string_view split) const override { return !set_.split(split).empty(); }
  std::uint64_t digest() const override { return digest_; }
  std::vector<std::string> notices() const override { return set_.notices; }
  std::string summary() const override;
  nlohmann::json counts() const override;
  SampleRows sample_rows() const override;
  MemoryPlan memory_plan(Config const& config, Device device, StepSizes const& step) const override;
  std::unique_ptr<Task> make_task(Config const& config, TaskContext const& context) const override;

 private:
  RatingSet set_;
  std::uint64_t digest_;
};

// Matrix factorization on one rank: the prediction of a rating is the dot product of a row of the table "rows" and a
// row of the table "columns", plus, with model.biases, the mean of all ratings and the biases of row and column.
//
// The loss is the squared error. The gradient of one row is a number, the slope of the loss, times the other row. So
// the pulled rows are the sources of the gradients, with 1 in place of the bias, and a step writes one number per
// rating.

// The task of one rank.
class RatingTask : public Task {
 public:
  // `set` must outlive this object. schedule_steps: see TaskContext.
  RatingTask(RatingSet const& set, Config const& config, std::int64_t schedule_steps);

  std::vector<TableOptions> tables() const override;  // rows, columns
  std::unique_ptr<TaskStep> prepare(Stream& stream, Batch const& batch) override;
  Metrics wait_evaluate(Stream& stream, Store& store, std::string_view split) override;
  std::vector<Blob> wait_save(Stream& stream) const override;

  // Results of a step; the arrays are reused in later steps.
  struct Computed {
    Array<float> row_sources, column_sources;  // with model.biases: rows with 1 as the last column
    Array<float> column_biases;                // with the mean
    Array<float> slopes;
    Array<std::int64_t> losses;
  };

 private:
  RatingSet const& set_;
  Config const config_;
  std::int64_t schedule_steps_;
  RatingScale const scale_;
  Computed computed_;
};

}  // namespace gpups::trainer
