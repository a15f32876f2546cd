// SPDX-License-Identifier: Apache-2.0
// The data of the rating task: a sparse matrix that is factorized.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trainer/step/task.hpp"
#include "trainer/tasks/ratings/rating_set.hpp"

namespace gpups::trainer {

// A set of ratings as Data.
class RatingData : public Data {
 public:
  explicit RatingData(RatingSet set) : set_(std::move(set)), digest_(set_.digest()) {}

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

}  // namespace gpups::trainer
