// SPDX-License-Identifier: Apache-2.0
// The events of a failure detector, one line each.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "comm/bootstrap/failure_detector.hpp"

namespace gpups::test {

class EventLog {
 public:
  comm::FailureDetector::Events events() {
    return {.lost = [this](Rank rank, std::string const& why) { add(rank, "lost: " + why); },
            .left = [this](Rank rank) { add(rank, "left"); }};
  }

  // Waits for `count` lines, and returns all lines.
  std::vector<std::string> in_order(std::size_t count) {
    std::unique_lock lock(mutex_);
    added_.wait_for(lock, std::chrono::seconds(60), [&] { return lines_.size() >= count; });
    return lines_;
  }
  std::vector<std::string> sorted(std::size_t count) {
    auto lines = in_order(count);
    std::sort(lines.begin(), lines.end());
    return lines;
  }

 private:
  void add(Rank rank, std::string const& what) {
    std::lock_guard lock(mutex_);
    lines_.push_back(std::to_string(number(rank)) + " " + what);
    added_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable added_;
  std::vector<std::string> lines_;
};

}  // namespace gpups::test
