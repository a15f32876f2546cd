// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/round/round_timer.hpp"

#include "kernels/base/overloaded.hpp"

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
  spend(std::visit(kernels::Overloaded{
                       [this](Round::SendGradients const&) -> Seconds& { return gradients_; },
                       [this](Round::ReceiveGradients const&) -> Seconds& { return gradients_; },
                       [this](Round::Apply const&) -> Seconds& { return update_; },
                       [this](Round::SendRefreshes const&) -> Seconds& { return refreshes_; },
                       [this](Round::ReceiveRefreshes const&) -> Seconds& { return refreshes_; },
                       [this](Round::Complete const&) -> Seconds& { return refreshes_; },
                   },
                   action));
}

RoundSeconds RoundTimer::seconds() const {
  return {.gradients = gradients_.load(),
          .update = update_.load(),
          .refreshes = refreshes_.load(),
          .waiting = waiting_.load()};
}

}  // namespace gpups::cache
