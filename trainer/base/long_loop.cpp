// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/long_loop.hpp"

#include <fmt/core.h>

#include <utility>

#include "gpups/error.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/base/stop_signals.hpp"

namespace gpups::trainer {
namespace {

constexpr std::chrono::seconds kBetweenLines{10};

}  // namespace

LongLoop::LongLoop(std::string what, double total, bool silent)
    : what_(std::move(what)), total_(total), silent_(silent), begin_(std::chrono::steady_clock::now()), last_(begin_) {}

void LongLoop::update(double done) {
  if (silent_) return;
  auto const now = std::chrono::steady_clock::now();
  if (now - last_ < kBetweenLines) return;
  last_ = now;
  double const seconds = std::chrono::duration<double>(now - begin_).count();
  bool const known = total_ > 0 && done > 0 && done <= total_;
  print_line(stderr, known ? fmt::format("{}: {:.0f} %, {} left", what_, 100 * done / total_,
                                         short_time(seconds * (total_ - done) / done))
                           : fmt::format("{}: for {}", what_, short_time(seconds)));
}

bool LongLoop::stops(double done) {
  update(done);
  return StopSignals::received();
}

void LongLoop::check(double done) {
  throw_if_stopped(what_);
  update(done);
}

void throw_if_stopped(std::string_view what) {
  if (!StopSignals::received()) return;
  throw Error(fmt::format(
      "stopped by a signal while {} (this process has trained nothing, so there is nothing new to save): run "
      "the same command again",
      what));
}

}  // namespace gpups::trainer
