// SPDX-License-Identifier: Apache-2.0
// The progress driver decides which thread makes progress for a rank, and how threads wait.
//
// With real transports, a thread that waits makes progress, and a communication thread does while no thread waits. In a
// simulation, a rank that waits makes progress for all ranks, in an order that the seed decides, and then hands over to
// a rank whose wait has ended.
#pragma once

#include <functional>
#include <memory>

#include "comm/base/wakeup.hpp"

namespace gpups::comm {

// The progress driver of one rank.
class ProgressDriver {
 public:
  virtual ~ProgressDriver() = default;

  // Starts to make progress. `progress` does what can be done now and returns whether it did anything; it never throws.
  // It is never called by two threads at the same time, but not always by the same thread.
  virtual void start(std::function<bool()> progress) = 0;

  // Requests progress and a new check of what wait() waits for, because something has changed. Any thread.
  virtual void wake() = 0;

  // The same for a thread that holds no lock which `progress` takes: the call may make the progress itself.
  virtual void progress_soon() { wake(); }

  // Blocks until done() is true; the waiting thread may make progress meanwhile. `done` is called often, by any thread,
  // and must be cheap. Returns false if `timeout_s` seconds have passed in which progress did nothing (in a simulation:
  // when nothing can happen any more, at any time).
  virtual bool wait(std::function<bool()> const& done, double timeout_s) = 0;

  // Stops progress: when it returns, `progress` is not running and will not run.
  virtual void stop() = 0;
};

// Creates the driver for real transports: a thread that waits makes progress, and a communication thread does while no
// thread waits. Both sleep on a wakeup event while there is nothing to do. cores(): returns the number of cores that
// the rank has for itself; called by each start(). With one core the communication thread backs off for longer.
std::unique_ptr<ProgressDriver> make_threaded_driver(
    std::function<std::unique_ptr<WakeupEvent>()> const& make_wakeup_event, std::function<int()> cores);

}  // namespace gpups::comm
