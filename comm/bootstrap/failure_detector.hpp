// SPDX-License-Identifier: Apache-2.0
// Detects lost ranks in a thread of its own, whatever the ranks compute meanwhile.
//
// Every rank keeps the connection to rank 0 by which it joined, and both ends send heartbeats. When a process ends, its
// connection closes at once; when a process hangs or its link is cut, its heartbeats stop. Rank 0 forwards failures to
// all other ranks. Frames are authenticated with the session key of the connection.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::comm {

class Connection;  // connection.hpp

// Options of a FailureDetector.
struct FailureDetectorOptions {
  double peer_timeout_s = 30;  // a rank that sends nothing for so many seconds is lost
};

// Reports which ranks have left or are lost.
class FailureDetector {
 public:
  struct Events {
    // A rank is lost; `why` is the reason without its number, such as "its process ended". Called once for each rank.
    // After rank 0 is lost, no further events of other ranks are reported.
    std::function<void(Rank rank, std::string const& why)> lost;
    // A rank has left in order. Called once for each rank.
    std::function<void(Rank rank)> left;
  };

  virtual ~FailureDetector() = default;  // ends the thread and closes the connections; blocks only briefly

  // Sets the functions to call, in place of those of the call before. The thread of the failure detector calls them one
  // at a time, and first reports the events since the join. REQUIRES: not called from one of these functions.
  virtual void subscribe(Events events) = 0;

  // Sends to all ranks that this rank leaves: in order if `why` is empty, else because of `at_fault`, which is this
  // rank or a lost one. Only the first call has an effect, except that an error after an orderly leave is still sent.
  // Any thread; does not block.
  virtual void leave(Rank at_fault, std::string const& why) = 0;

  // Blocks until all other ranks have left or are lost, or `timeout_s` is over; returns whether they have. A rank calls
  // it after an orderly leave, so that its last messages arrive.
  virtual bool wait_all_left(double timeout_s) = 0;
};

// Creates the failure detector of rank `mine`, which takes over the connections by which the ranks have joined. On rank
// 0, which is the heartbeat hub, connections[r] is the connection to rank r, and the first element is not used. On
// other ranks the only element is the connection to rank 0.
std::unique_ptr<FailureDetector> make_failure_detector(Rank mine, std::uint32_t size,
                                                       std::vector<Connection> connections,
                                                       FailureDetectorOptions const& options);

// A failure detector that reports the first lost rank to a second function, too.
class ForwardedFailures final : public FailureDetector {
 public:
  explicit ForwardedFailures(std::unique_ptr<FailureDetector> failure_detector)
      : failure_detector_(std::move(failure_detector)) {}

  // Sets a function that is called once, from any thread, with the first lost rank. If a rank is already lost, it is
  // called at once.
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
                                        forward(rank, why);  // first, because the other function may never return
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

  std::mutex mutex_;  // protects first_ and on_lost_
  std::optional<std::pair<Rank, std::string>> first_;
  OnLost on_lost_;
  std::unique_ptr<FailureDetector> const failure_detector_;
};

}  // namespace gpups::comm
