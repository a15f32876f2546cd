// SPDX-License-Identifier: Apache-2.0
#include "cache/round_times.hpp"

namespace gpups::cache {

void RoundTimes::spend(Seconds& on) {
  auto const now = std::chrono::steady_clock::now();
  double const passed = std::chrono::duration<double>(now - last_).count();
  on.store(on.load(std::memory_order_relaxed) + passed, std::memory_order_relaxed);  // one thread at a time writes
  last_ = now;
}

void RoundTimes::turn_begins(Round::Phase phase) {
  if (phase == Round::Phase::kTraining) {
    last_ = std::chrono::steady_clock::now();
  } else {
    spend(waiting_);
  }
}

void RoundTimes::moved(Round::Phase phase) {
  if (phase != Round::Phase::kTraining) spend(phase == Round::Phase::kIn ? in_ : out_);
}

void RoundTimes::acted(Round::Step step) {
  switch (step) {
    case Round::Step::kSendIn:
    case Round::Step::kTakeIn:
      return spend(in_);
    case Round::Step::kApply:
      return spend(apply_);
    case Round::Step::kSendOut:
    case Round::Step::kTakeOut:
    case Round::Step::kComplete:
      return spend(out_);
  }
}

RoundSeconds RoundTimes::seconds() const {
  return {.in = in_.load(), .apply = apply_.load(), .out = out_.load(), .waiting = waiting_.load()};
}

}  // namespace gpups::cache
