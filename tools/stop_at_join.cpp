// SPDX-License-Identifier: Apache-2.0
#include "tools/stop_at_join.hpp"

#include <chrono>
#include <cstdlib>
#include <utility>

#include "tools/standard_streams.hpp"
#include "trainer/base/stop_signals.hpp"

namespace gpups::tools {

StopAtJoin::StopAtJoin(std::function<void()> clean_up) : clean_up_(std::move(clean_up)), thread_([this] { watch(); }) {}

StopAtJoin::~StopAtJoin() {
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void StopAtJoin::watch() {
  constexpr std::chrono::milliseconds kPollInterval{50};
  std::unique_lock lock(mutex_);
  while (!trainer::StopSignals::received()) {
    if (changed_.wait_for(lock, kPollInterval, [this] { return over_; })) return;
  }
  if (over_) return;
  clean_up_();
  print_error(
      "stopped by a signal before all processes of the job had joined (nothing was trained, so there is nothing to "
      "save): start the job again");
  std::_Exit(2);
}

}  // namespace gpups::tools
