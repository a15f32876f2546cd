// SPDX-License-Identifier: Apache-2.0
// Where the time of steps goes. Profilers that read NVTX see the same stretches under the same names.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "kernels/nvtx.hpp"

namespace gpups::trainer {

enum class Stage : std::size_t {
  kPrepare,  // in the thread that works ahead, so beside the others
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

// Of one rank. Any thread. On a GPU it is the time to queue work, and to wait where a stage does.
class StageTimes {
 public:
  // From construction to destruction, a thread is in a stage.
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

  // In all ranges that have ended.
  double seconds(Stage stage) const {
    return std::chrono::duration<double>(SteadyClock::duration(ticks_[static_cast<std::size_t>(stage)].load())).count();
  }

 private:
  using SteadyClock = std::chrono::steady_clock;
  std::atomic<SteadyClock::rep>& of(Stage stage) { return ticks_[static_cast<std::size_t>(stage)]; }

  std::array<std::atomic<SteadyClock::rep>, kStageNames.size()> ticks_{};
};

}  // namespace gpups::trainer
