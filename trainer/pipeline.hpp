// SPDX-License-Identifier: Apache-2.0
// Makes the coming steps ready ahead of their time: samples, entries, distinct keys. Preparing a step announces it to
// the other ranks, so that its rows are there when it comes. Where epochs have the same batches, what was made of each
// is kept for the epochs after.
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
#include "trainer/batch_sampler.hpp"
#include "trainer/stage_times.hpp"
#include "trainer/task.hpp"

namespace gpups::trainer {

// A step that is ready to run. A rank may have no samples in a small last batch: then there is nothing prepared.
struct PreparedStep {
  Clock clock{};
  std::int64_t epoch = 0;
  std::size_t samples = 0;          // of this rank
  std::uint32_t batch_samples = 0;  // of all ranks
  std::size_t microbatches = 0;     // of this rank
  std::shared_ptr<TaskStep> work;
  PreparedBatch prepared;
};

struct PipelineOptions {
  Clock begin{}, end{};       // the first step, and the one after the last
  std::size_t lookahead = 4;  // steps that are prepared before they are asked for
  // false: next() prepares them itself, in the calling thread; for ranks that take turns.
  bool prefetch_thread = true;
  bool reuse_batches = false;  // REQUIRES: BatchOptions::same_batches, and steps of the task that may be run again
};

class Pipeline {
 public:
  // `store`, `task` and `times` must stay.
  Pipeline(Store& store, Task& task, BatchSampler batches, StageTimes& times, PipelineOptions const& options);
  ~Pipeline();
  Pipeline(Pipeline const&) = delete;
  Pipeline& operator=(Pipeline const&) = delete;

  // The next step, or nothing after the last. What went wrong in the thread is thrown here.
  std::optional<PreparedStep> next();

 private:
  // What was made of a batch.
  struct CachedBatch {
    std::size_t samples, microbatches;
    std::shared_ptr<TaskStep> work;
    BatchPattern pattern;
  };

  PreparedStep prepare(Clock clock);
  PreparedStep prepare_anew(Clock clock);
  void run();   // the thread
  void fill();  // without a thread

  Store& store_;
  Task& task_;
  BatchSampler batches_;
  StageTimes& times_;
  PipelineOptions const options_;
  Stream stream_;
  Clock coming_;                                // the next to be prepared
  std::map<std::int64_t, CachedBatch> cached_;  // by number of the batch

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<PreparedStep> ready_;  // at most `lookahead`
  std::exception_ptr failure_;
  bool stopping_ = false, ended_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace gpups::trainer
