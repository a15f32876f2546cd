// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/stop_signals.hpp"

#include <atomic>

namespace gpups::trainer {
namespace {

constexpr int kSignals[] = {SIGTERM, SIGUSR1, SIGINT, SIGHUP};
constexpr int kCount = 4;
static_assert(sizeof kSignals == kCount * sizeof(int));

// Global, because a signal handler has no other access to it.
std::atomic<bool> stop_came{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void remember(int signal) {
  stop_came = true;
  if (signal == SIGINT) std::signal(SIGINT, SIG_DFL);
}

}  // namespace

StopSignals::StopSignals() {
  stop_came = false;
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;
  for (int i = 0; i < kCount; ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    bool const kept_off = kSignals[i] == SIGHUP && before_[i].sa_handler == SIG_IGN;  // set by nohup
    if (!kept_off) sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (int i = 0; i < kCount; ++i) sigaction(kSignals[i], &before_[i], nullptr);
  stop_came = false;
}

bool StopSignals::received() { return stop_came; }

}  // namespace gpups::trainer
