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
  kBeginSum,  // of dense layers
  kAdvanceClock,
  kWaitApply,
};
inline constexpr std::array kStageNames{"prepare", "wait_ready", "pull",          "forward_backward",
                                        "push",    "begin_sum",  "advance_clock", "wait_apply"};

// Of one rank. Any thread. On a GPU it is the time to queue work, and to wait where a stage does.
class StageTimes {
 public:
  // From construction to destruction, a thread is in a stage.
  class Range {
   public:
    Range(StageTimes& times, Stage stage)
        : nvtx_(kStageNames[static_cast<std::size_t>(stage)]), times_(times), stage_(stage), begin_(Clock::now()) {}
    ~Range() { times_.of(stage_) += (Clock::now() - begin_).count(); }
    Range(Range const&) = delete;
    Range& operator=(Range const&) = delete;

   private:
    kernels::NvtxRange nvtx_;
    StageTimes& times_;
    Stage stage_;
    std::chrono::steady_clock::time_point begin_;
  };

  // In all ranges that have ended.
  double seconds(Stage stage) const {
    return std::chrono::duration<double>(Clock::duration(ticks_[static_cast<std::size_t>(stage)].load())).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::atomic<Clock::rep>& of(Stage stage) { return ticks_[static_cast<std::size_t>(stage)]; }

  std::array<std::atomic<Clock::rep>, kStageNames.size()> ticks_{};
};

}  // namespace gpups::trainer
