// SPDX-License-Identifier: Apache-2.0
// Who turns a rank's protocol, and how a thread waits for it.
//
// Over real transports the thread that waits turns it, and a communication thread while none does. In a simulation,
// whichever rank has to wait turns the protocols of all ranks, in an order that the seed decides, and then hands over
// to a rank whose wait has ended.
#pragma once

#include <functional>

namespace gpups::comm {

class ProgressDriver {
 public:
  virtual ~ProgressDriver() = default;

  // Starts turning. `progress` does what can be done now and says whether it did anything; it never throws. It is never
  // called by two threads at once, but not always by the same.
  virtual void start(std::function<bool()> progress) = 0;

  // Something has changed: turn again, and look again at what wait() waits for. Any thread.
  virtual void wake() = 0;

  // The same for a thread that holds no lock which turning takes: it may do the next turn itself.
  virtual void progress_soon() { wake(); }

  // Blocks until done() is true; meanwhile the thread that waits may do the turns. `done` may be called from any
  // thread, often, and must be cheap. Returns false if `timeout_s` has passed without any turn that did something (in a
  // simulation: when nothing can happen any more, whatever the time).
  virtual bool wait(std::function<bool()> const& done, double timeout_s) = 0;

  // Ends turning: when it returns, `progress` is not running and will not run.
  virtual void stop() = 0;
};

}  // namespace gpups::comm
