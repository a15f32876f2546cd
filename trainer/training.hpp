// SPDX-License-Identifier: Apache-2.0
// The parts of a run on one rank, and what happens between its steps.
#pragma once

#include <memory>
#include <optional>

#include "trainer/batch_sampler.hpp"
#include "trainer/metrics.hpp"
#include "trainer/progress_reporter.hpp"
#include "trainer/run_folder.hpp"
#include "trainer/session.hpp"
#include "trainer/stage_times.hpp"
#include "trainer/step_runner.hpp"
#include "trainer/stopwatch.hpp"
#include "trainer/train.hpp"
#include "trainer/trainer_state.hpp"

namespace gpups::trainer {

class Training {
 public:
  // Restores the checkpoint where that was asked for. Collective.
  Training(Config const& config, Data const& data, Group const& group, TrainOptions const& options);

  // The names behind the keys of an error.
  std::string explain(std::string const& message) { return task().explain(message); }
  // Steps until the run is done, or all ranks have agreed to stop. Collective.
  void wait_train();
  // Saves, evaluates, and writes the summary. Returns false where the run stopped early. Collective.
  bool wait_finish();

 private:
  Task& task() { return *session_->task; }
  bool is_root() const { return number(store().rank()) == 0; }
  Store& store() { return session_->store; }
  Store const& store() const { return session_->store; }

  void restore_or_begin(TrainOptions const& options, Group const& group);
  void wait_print_locations(Group const& group);
  void after_step(Clock done, std::int64_t loss, std::size_t samples);
  Clock next_break() const;
  // Steps until this one. False: the run is to stop.
  bool wait_train_until(StepRunner& stepper, Clock end);
  // The collective parts of a break between steps.
  void wait_report();
  // What this rank will take and has taken; that of the task is there when the session is.
  MemoryPlan memory_plan(Device device);
  void wait_progressive();
  void wait_expire();
  void wait_validate();
  void wait_save();
  // What went between ranks, where time went, and memory, up to now: as metrics.jsonl and summary.json both say it.
  nlohmann::json accounts_of(Stats const& mine, TrafficReport const& traffic_report);
  nlohmann::json wait_summary();
  // How sums over the ranks went, line by line, on rank 0.
  std::vector<std::string> explain_sums(TrafficReport const& traffic_report);

  Config config_;
  Data const& data_;
  Group const group_;
  std::optional<RunFolder> folder_;  // of rank 0
  std::filesystem::path checkpoint_;
  ProgressReporter progress_;
  std::uint64_t data_digest_;
  std::int64_t steps_per_epoch_, end_;
  TrainerState state_;
  std::optional<Session> session_;
  std::optional<BatchSampler> batches_;
  std::optional<Stream> stream_;  // for evaluation
  Stopwatch watch_;               // of training, without what comes between steps
  StageTimes stages_;

  IntervalStats since_report_;
  std::optional<double> loss_;   // of the last report
  double seconds_before_ = 0;    // of training before a resume
  double seconds_reported_ = 0;  // of training, at the last report
  std::int64_t first_step_ = 0, step_reported_ = 0;
  std::optional<Metrics> progressive_, valid_, test_;
  bool patience_over_ = false, stopped_ = false;
};

}  // namespace gpups::trainer
