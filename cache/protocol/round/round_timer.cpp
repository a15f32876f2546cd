// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/round/round_timer.hpp"

namespace gpups::cache {

void RoundTimer::spend(Seconds& on) {
  auto const now = std::chrono::steady_clock::now();
  double const passed = std::chrono::duration<double>(now - last_).count();
  on.store(on.load(std::memory_order_relaxed) + passed, std::memory_order_relaxed);  // only one thread writes at a time
  last_ = now;
}

void RoundTimer::progress_begins(Round::Phase phase) {
  if (phase == Round::Phase::kTraining) {
    last_ = std::chrono::steady_clock::now();
  } else {
    spend(waiting_);
  }
}

void RoundTimer::moved(Round::Phase phase) {
  if (phase != Round::Phase::kTraining) spend(phase == Round::Phase::kGradientPhase ? gradients_ : refreshes_);
}

void RoundTimer::acted(Round::Action const& action) {
  bool const gradients =
      std::holds_alternative<Round::SendGradients>(action) || std::holds_alternative<Round::ReceiveGradients>(action);
  spend(gradients ? gradients_ : std::holds_alternative<Round::Apply>(action) ? update_ : refreshes_);
}

RoundSeconds RoundTimer::seconds() const {
  return {.gradients = gradients_.load(),
          .update = update_.load(),
          .refreshes = refreshes_.load(),
          .waiting = waiting_.load()};
}

}  // namespace gpups::cache
