// SPDX-License-Identifier: Apache-2.0
// Looks, in a thread of its own, after who of the job is still there, whatever else the ranks are doing.
//
// Every rank keeps the connection to rank 0 by which it joined, and both ends say regularly that they are there. A
// process that ends closes its connection at once; one that hangs, and one whose link is cut, falls silent. Rank 0
// tells all others. What is said is authenticated by a key that the join made.
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

class Connection;

struct FailureDetectorOptions {
  double peer_timeout_s = 30;  // how long a rank may be silent before it is taken for lost
};

class FailureDetector {
 public:
  struct Events {
    // A rank is gone without having left regularly; why, in words without its number: "its process ended". Once for
    // each rank. When rank 0 is gone nobody is told of others any more.
    std::function<void(Rank rank, std::string const& why)> lost;
    // A rank has left regularly. Once for each rank.
    std::function<void(Rank rank)> left;
  };

  virtual ~FailureDetector() = default;  // ends the thread and closes the connections; never blocks for long

  // From now on these are called, one at a time, from the watch's thread; what has happened since the join too.
  // What was listening before is called no more. REQUIRES: not called by it.
  virtual void subscribe(Events events) = 0;

  // Tells all that this rank leaves: regularly where `why` is empty, else because of `at_fault`, which may be this rank
  // or one that it has lost. The first call counts, but an error after a regular end does too. Any thread; does not
  // block.
  virtual void leave(Rank at_fault, std::string const& why) = 0;

  // Blocks until all others have left or are lost, or the time is over; says whether they have. A rank stays until then
  // after a regular end, so that what it has sent last arrives.
  virtual bool wait_all_left(double timeout_s) = 0;
};

// Creates the failure detector of rank `mine`, which takes over the connections by which the ranks have joined. On rank
// 0, which is the heartbeat hub, connections[r] is the connection to rank r, and the first element is not used. On
// other ranks the only element is the connection to rank 0.
std::unique_ptr<FailureDetector> make_heartbeat_hub(Rank mine, std::uint32_t size, std::vector<Connection> connections,
                                                    FailureDetectorOptions const& options);

// A failure detector that reports the first lost rank to a second function, too.
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
