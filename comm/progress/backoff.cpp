// SPDX-License-Identifier: Apache-2.0
#include "comm/progress/backoff.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "kernels/base/check.hpp"

namespace gpups::comm {

// CLOCK_MONOTONIC is the clock of std::chrono::steady_clock.
Timer::Timer() : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {
  GPUPS_REQUIRE(timer_ >= 0,
                "a rank cannot create a timer ({}), which its communication thread needs: allow more open "
                "files (ulimit -n)",
                std::strerror(errno));
}

Timer::~Timer() { ::close(timer_); }

void Timer::set(Time at) {
  auto const since_epoch = std::max(at.time_since_epoch(), Time::duration(1));  // 0 would disable the timer
  auto const seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch);
  itimerspec const when{.it_interval = {}, .it_value = {seconds.count(), (since_epoch - seconds).count()}};
  [[maybe_unused]] int const failed = ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
  GPUPS_ASSERT(!failed);
}

void Timer::wait() {
  std::uint64_t signaled;
  while (::read(timer_, &signaled, sizeof signaled) < 0 && errno == EINTR) {
  }
}

}  // namespace gpups::comm
