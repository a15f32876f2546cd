// SPDX-License-Identifier: Apache-2.0
// Measures the time of each stage of a step. Profilers that read NVTX ranges show the same stages under these names.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "kernels/base/nvtx.hpp"

namespace gpups::trainer {

// Measures seconds between start() and stop(), summed over all intervals.

// start() and stop() may be called repeatedly.
class Stopwatch {
 public:
  void start() {
    running_ = true;
    started_ = SteadyClock::now();
  }
  void stop() {
    before_ = seconds();
    running_ = false;
  }
  // Returns the total, including the current interval.
  double seconds() const {
    return running_ ? before_ + std::chrono::duration<double>(SteadyClock::now() - started_).count() : before_;
  }

 private:
  using SteadyClock = std::chrono::steady_clock;
  SteadyClock::time_point started_{};
  double before_ = 0;  // seconds of earlier intervals
  bool running_ = false;
};

// The stages of a training step.
enum class Stage : std::size_t {
  kPrepare,  // in the prefetch thread, at the same time as the other stages
  kWaitReady,
  kPull,
  kForwardBackward,
  kPush,
  kBeginAllreduce,  // of dense layers
  kAdvanceClock,
  kWaitApply,
};
inline constexpr std::array kStageNames{"prepare", "wait_ready",      "pull",          "forward_backward",
                                        "push",    "begin_allreduce", "advance_clock", "wait_apply"};

// The stage times of one rank. Any thread. On a GPU, a stage's time is the time to queue its work, and the time for
// which it waits.
class StageTimes {
 public:
  // Adds the time from its construction to its destruction to a stage.
  class StageTimer {
   public:
    StageTimer(StageTimes& times, Stage stage)
        : nvtx_(kStageNames[static_cast<std::size_t>(stage)]),
          times_(times),
          stage_(stage),
          begin_(SteadyClock::now()) {}
    ~StageTimer() { times_.of(stage_) += (SteadyClock::now() - begin_).count(); }
    StageTimer(StageTimer const&) = delete;
    StageTimer& operator=(StageTimer const&) = delete;

   private:
    kernels::NvtxRange nvtx_;
    StageTimes& times_;
    Stage stage_;
    std::chrono::steady_clock::time_point begin_;
  };

  // Returns the total of all timers that have ended.
  double seconds(Stage stage) const {
    return std::chrono::duration<double>(SteadyClock::duration(ticks_[static_cast<std::size_t>(stage)].load())).count();
  }

 private:
  using SteadyClock = std::chrono::steady_clock;
  std::atomic<SteadyClock::rep>& of(Stage stage) { return ticks_[static_cast<std::size_t>(stage)]; }

  std::array<std::atomic<SteadyClock::rep>, kStageNames.size()> ticks_{};
};

}  // namespace gpups::trainer
