// SPDX-License-Identifier: Apache-2.0
// A training step.
#pragma once

#include <cstdint>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/pipeline.hpp"
#include "trainer/stage_times.hpp"
#include "trainer/task.hpp"

namespace gpups::trainer {

// Owns what a step computes, from step to step.
class StepRunner {
 public:
  // All must stay. times: get what steps take.
  StepRunner(Store& store, Task& task, StageTimes& times);

  // Blocks until the step before is complete on every rank and the rows of this one are here.
  void wait_ready(PreparedStep const& step);
  // Runs the step, and keeps it until the next one: a GPU may still read its arrays. Returns the sum of its samples'
  // losses on this rank, in units of 2^-30. signal: as for Store::advance_clock. REQUIRES: wait_ready(step).
  std::int64_t run(PreparedStep step, std::uint32_t signal);

 private:
  // Room for the rows of the step's keys.
  void reserve(PreparedStep const& step);

  Store& store_;
  Task& task_;
  StageTimes& times_;
  Stream stream_;
  std::vector<Matrix<float>> rows_;       // for each part
  std::vector<MatrixView<float>> views_;  // of its first rows, as many as the step has
  std::vector<MatrixView<float const>> const_views_;
  PreparedStep last_;
};

}  // namespace gpups::trainer
