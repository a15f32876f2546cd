// SPDX-License-Identifier: Apache-2.0
// A watch that lets somebody else hear, too, that a rank is lost.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "comm/bootstrap/failure_detector.hpp"

namespace gpups::comm {

class ForwardedFailures final : public FailureDetector {
 public:
  explicit ForwardedFailures(std::unique_ptr<FailureDetector> failure_detector)
      : failure_detector_(std::move(failure_detector)) {}

  // Called once, from any thread, when the first rank is lost; at once if one is.
  using OnLost = std::function<void(Rank rank, std::string const& why)>;
  void on_lost(OnLost on_lost) {
    std::lock_guard lock(mutex_);
    on_lost_ = std::move(on_lost);
    if (first_ && on_lost_) on_lost_(first_->first, first_->second);
  }

  void subscribe(Events events) override {
    if (!events.lost) return failure_detector_->subscribe(std::move(events));
    failure_detector_->subscribe({.lost =
                                      [this, lost = std::move(events.lost)](Rank rank, std::string const& why) {
                                        forward(rank, why);  // first: the other may never come back
                                        lost(rank, why);
                                      },
                                  .left = std::move(events.left)});
  }
  void leave(Rank at_fault, std::string const& why) override { failure_detector_->leave(at_fault, why); }
  bool wait_all_left(double timeout_s) override { return failure_detector_->wait_all_left(timeout_s); }

 private:
  void forward(Rank rank, std::string const& why) {
    std::lock_guard lock(mutex_);
    if (first_) return;
    first_.emplace(rank, why);
    if (on_lost_) on_lost_(rank, why);
  }

  std::mutex mutex_;  // of the two below
  std::optional<std::pair<Rank, std::string>> first_;
  OnLost on_lost_;
  std::unique_ptr<FailureDetector> const failure_detector_;
};

}  // namespace gpups::comm
