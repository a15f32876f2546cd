// SPDX-License-Identifier: Apache-2.0
// Runs training steps on one rank: pull, forward and backward, push, and the update of dense layers.
#pragma once

#include <cstdint>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/accounts/stage_times.hpp"
#include "trainer/step/pipeline.hpp"
#include "trainer/step/task.hpp"

namespace gpups::trainer {

// Reuses its buffers from step to step. One thread at a time.
class StepRunner {
 public:
  // All arguments must outlive this object. times: receives the time of each stage.
  StepRunner(Store& store, Task& task, StageTimes& times);

  // Blocks until the previous step is complete on every rank and the rows of this step are on this rank.
  void wait_ready(PreparedStep const& step);
  // Runs the step, and keeps its arrays until the next one because a GPU may still read them. Returns the summed loss
  // of this rank's samples, in units of 2^-30. signal: see Store::advance_clock. REQUIRES: wait_ready(step).
  std::int64_t run(PreparedStep step, std::uint32_t signal);

 private:
  // Returns the sum of the losses of a step.
  std::int64_t wait_loss(PreparedStep const& step, View<std::int64_t const> losses);
  // Allocates buffers for the rows of the step's keys.
  void reserve(PreparedStep const& step);

  Store& store_;
  Task& task_;
  StageTimes& times_;
  Stream stream_;
  std::vector<Matrix<float>> rows_;       // for each part
  std::vector<MatrixView<float>> views_;  // the first rows of rows_, one for each key of the step
  std::vector<MatrixView<float const>> const_views_;
  PreparedStep last_;
};

}  // namespace gpups::trainer
