// SPDX-License-Identifier: Apache-2.0
// The training loop of one rank, and the work between steps: reports, validation, checkpoints.
#pragma once

#include <memory>
#include <optional>

#include "trainer/accounts/metrics.hpp"
#include "trainer/accounts/stage_times.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/placement/trace_writer.hpp"
#include "trainer/run/train.hpp"
#include "trainer/saved/run_folder.hpp"
#include "trainer/saved/trainer_state.hpp"
#include "trainer/step/batch_sampler.hpp"
#include "trainer/step/session.hpp"
#include "trainer/step/step_runner.hpp"

namespace gpups::trainer {

// A run on one rank; train() uses it.
class Training {
 public:
  // Restores the checkpoint if options.resume is set and there is one. Blocks. Collective.
  Training(Config const& config, Data const& data, Group const& group, TrainOptions const& options);

  // Returns whether the resumed run had finished before, so there is nothing to train and nothing to write.
  bool had_finished() const { return had_finished_; }
  // Returns an error message with the names of the keys in it.
  std::string explain(std::string const& message) { return task().explain(message); }
  // Trains until the last step, or until the ranks stop because of a signal or of train.patience. Collective.
  void wait_train();
  // Saves, evaluates, and writes the summary. Returns false if a signal stopped the run early. Collective.
  bool wait_finish();

 private:
  Task& task() { return *session_->task; }
  bool is_root() const { return number(store().rank()) == 0; }
  Store& store() { return session_->store; }
  Store const& store() const { return session_->store; }

  void restore_or_begin(TrainOptions const& options, Group const& group);
  bool is_best_kept() const;
  bool wait_find_finished();
  void wait_print_locations(Group const& group);
  void after_step(Clock done, std::int64_t loss, std::size_t samples);
  Clock next_break() const;
  // Trains the steps before `end`. Returns false if the run has to stop.
  bool wait_train_until(StepRunner& stepper, Clock end);
  // Collective work between steps.
  void wait_report();
  void say_if_diverged();
  std::size_t prepared_min() const;
  void say_if_late(RowReport const& rows);
  // Returns the memory of this rank: of the store and the data, which is allocated, and of steps.
  MemoryPlan memory_plan(Device device);
  void wait_progressive();
  void wait_expire();
  // Returns nothing if a signal came to any rank meanwhile: then not all samples were evaluated.
  std::optional<Metrics> wait_evaluate(std::string_view split);
  void wait_validate();
  void wait_keep_best(std::optional<Metrics> const& test);
  void say_if_none_is_best();
  void wait_save(std::filesystem::path const& checkpoint);
  // Returns a speed in samples per second, and in the unit of the data, for metrics.jsonl and summary.json.
  nlohmann::json speeds(double samples_per_s) const;
  // Returns the traffic, keys, times and memory up to now, for metrics.jsonl and summary.json.
  nlohmann::json accounts_of(Stats const& mine, Totals const& totals);
  nlohmann::json wait_summary();
  void wait_test(nlohmann::json& summary);
  // Returns lines about the algorithms of the allreduces, on rank 0.
  std::vector<std::string> explain_sums(TrafficReport const& traffic_report);

  Config config_;
  Data const& data_;
  Group const group_;
  std::optional<RunFolder> folder_;  // on rank 0 only
  std::filesystem::path checkpoint_, best_checkpoint_;
  ProgressReporter progress_;
  std::uint64_t data_digest_;
  std::int64_t steps_per_epoch_, end_;
  TrainerState state_;
  std::optional<Session> session_;
  std::optional<BatchSampler> batches_;
  std::optional<TraceWriter> trace_;  // with placement.trace_steps
  std::optional<Stream> stream_;      // for evaluation
  Stopwatch watch_;                   // training time, without the work between steps
  Stopwatch total_;                   // all time since the constructor
  StageTimes stages_;

  IntervalStats since_report_;
  double first_loss_ = 0;        // the mean of the first step, on this rank; 0 if another run had it
  double seconds_before_ = 0;    // training time before the resume
  double seconds_of_process_;    // time of this process before the constructor
  double seconds_reported_ = 0;  // training time at the last report
  std::int64_t first_step_ = 0, step_reported_ = 0;
  std::optional<Metrics> valid_;
  bool had_finished_ = false, patience_over_ = false, stopped_ = false;
};

}  // namespace gpups::trainer
