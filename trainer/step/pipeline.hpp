// SPDX-License-Identifier: Apache-2.0
// Prepares steps some steps ahead: samples, entries and distinct keys. Preparing a step announces its keys to their
// owners, so its rows arrive before the step begins. If epochs have the same batches, each batch is prepared once and
// kept for later epochs.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "gpups/gpups.hpp"
#include "trainer/accounts/stage_times.hpp"
#include "trainer/placement/trace_writer.hpp"
#include "trainer/step/batch_sampler.hpp"
#include "trainer/step/task.hpp"

namespace gpups::trainer {

// A step that is ready to run. If a small batch has no samples for this rank, `work` is null and `prepared` empty.
struct PreparedStep {
  Clock clock{};
  std::int64_t epoch = 0;
  std::size_t samples = 0;          // of this rank
  std::uint32_t batch_samples = 0;  // of all ranks
  std::size_t microbatches = 0;     // of this rank
  std::shared_ptr<TaskStep> work;
  PreparedBatch prepared;
  Event ready{};  // when the arrays of `work` are on the device
};

// Options of a Pipeline.
struct PipelineOptions {
  Clock begin{}, end{};       // steps begin .. end - 1
  std::size_t lookahead = 4;  // number of steps that are prepared ahead
  // next() waits until as many steps are prepared, those that it returned excepted, or all that are left. At most
  // `lookahead`.
  std::size_t prepared_min = 1;
  // false: next() prepares steps in the calling thread, as simulated ranks require.
  bool prefetch_thread = true;
  bool reuse_batches = false;    // REQUIRES: BatchOptions::same_batches, and a task whose TaskSteps can run repeatedly
  TraceWriter* trace = nullptr;  // records the keys of prepared steps; may be null
};

// The steps of one rank, in order. One thread calls next().
class Pipeline {
 public:
  // `store`, `task` and `times` must outlive this object.
  Pipeline(Store& store, Task& task, BatchSampler batches, StageTimes& times, PipelineOptions const& options);
  ~Pipeline();
  Pipeline(Pipeline const&) = delete;
  Pipeline& operator=(Pipeline const&) = delete;

  // Returns the next step, or nothing after the last one. Blocks until the step is prepared. Throws the exceptions of
  // the prefetch thread.
  std::optional<PreparedStep> next();

 private:
  // A prepared batch without its clock.
  struct CachedBatch {
    std::size_t samples, microbatches;
    std::shared_ptr<TaskStep> work;
    BatchPattern pattern;
  };

  PreparedStep prepare(Clock clock);
  PreparedStep prepare_or_reuse(Clock clock);
  PreparedStep prepare_anew(Clock clock);
  void run();   // body of the prefetch thread
  void fill();  // prepares steps in the calling thread

  Store& store_;
  Task& task_;
  BatchSampler batches_;
  StageTimes& times_;
  PipelineOptions const options_;
  Stream stream_;
  Clock coming_;                                // the next step to prepare
  std::map<std::int64_t, CachedBatch> cached_;  // by BatchSampler::batch_number()

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<PreparedStep> ready_;  // at most `lookahead`
  std::exception_ptr failure_;
  bool stopping_ = false, ended_ = false;
  std::thread thread_;  // declared last, because it uses all other members
};

}  // namespace gpups::trainer
