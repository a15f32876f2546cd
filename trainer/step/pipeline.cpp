// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/pipeline.hpp"

#include <utility>

namespace gpups::trainer {

Pipeline::Pipeline(Store& store, Task& task, BatchSampler batches, StageTimes& times, PipelineOptions const& options)
    : store_(store),
      task_(task),
      batches_(std::move(batches)),
      times_(times),
      options_(options),
      stream_(store.make_stream()),
      coming_(options.begin) {
  if (options_.prefetch_thread) thread_ = std::thread([this] { run(); });
}

Pipeline::~Pipeline() {
  {
    std::lock_guard const lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::optional<PreparedStep> Pipeline::next() {
  if (!options_.prefetch_thread) fill();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ready_.size() >= options_.prepared_min || ended_ || !options_.prefetch_thread; });
  if (ready_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    return std::nullopt;
  }
  PreparedStep step = std::move(ready_.front());
  ready_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return step;
}

PreparedStep Pipeline::prepare(Clock clock) {
  StageTimes::StageTimer const range(times_, Stage::kPrepare);
  PreparedStep step = prepare_or_reuse(clock);
  if (options_.trace != nullptr) options_.trace->wait_add(stream_, clock, step.prepared);
  return step;
}

PreparedStep Pipeline::prepare_or_reuse(Clock clock) {
  if (!options_.reuse_batches) return prepare_anew(clock);
  std::int64_t const batch = batches_.batch_number(clock);
  auto const cached = cached_.find(batch);
  if (cached != cached_.end()) {
    auto const& [samples, microbatches, work, pattern] = cached->second;
    return {.clock = clock,
            .epoch = number(clock) / batches_.steps_per_epoch(),
            .samples = samples,
            .batch_samples = batches_.samples(clock),
            .microbatches = microbatches,
            .work = work,
            .prepared = store_.prepare(pattern, clock)};
  }
  PreparedStep step = prepare_anew(clock);
  if (step.samples > 0) {
    cached_.emplace(batch, CachedBatch{step.samples, step.microbatches, step.work, step.prepared.pattern()});
  }
  return step;
}

PreparedStep Pipeline::prepare_anew(Clock clock) {
  Batch const batch = batches_.make(clock);
  PreparedStep step{.clock = clock,
                    .epoch = batch.epoch,
                    .samples = batch.samples.size(),
                    .batch_samples = batches_.samples(clock),
                    .microbatches = batch.microbatches.size(),
                    .work = nullptr,
                    .prepared = {}};
  if (step.samples == 0) return step;
  step.work = task_.prepare(stream_, batch);
  step.prepared = store_.prepare(stream_, clock, step.work->tables(), step.samples);
  step.ready = stream_.record();
  return step;
}

void Pipeline::fill() {
  while (coming_ < options_.end && ready_.size() <= options_.lookahead) {
    ready_.push_back(prepare(coming_));
    coming_ = coming_ + 1;
  }
}

void Pipeline::run() {
  try {
    for (; coming_ < options_.end; coming_ = coming_ + 1) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stopping_ || ready_.size() < options_.lookahead; });
        if (stopping_) break;
      }
      PreparedStep step = prepare(coming_);
      std::lock_guard const lock(mutex_);
      ready_.push_back(std::move(step));
      changed_.notify_all();
    }
  } catch (...) {
    std::lock_guard const lock(mutex_);
    failure_ = std::current_exception();
  }
  std::lock_guard const lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

}  // namespace gpups::trainer
