// SPDX-License-Identifier: Apache-2.0
// A rank's protocol with the others: does what the application's threads post, gives messages to their channels, lets
// threads wait, and tells the other ranks what has gone wrong. All of that happens in progress(); whichever thread
// calls it (see comm/progress/progress_driver.hpp), calls exclude each other.
#pragma once

#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/bulk/bulk_transport.hpp"
#include "comm/progress/channel.hpp"
#include "comm/progress/messenger.hpp"
#include "comm/progress/progress_driver.hpp"
#include "comm/transport/transport.hpp"

namespace gpups::comm {

// How long a peer may let this rank wait.
struct WaitLimit {
  double seconds;
  char const* setting;  // by which a user allows more, for the error
};
// For what may take the ranks very different times, and for a rank's work of its own, which no peer can delay.
inline constexpr WaitLimit kNoLimit{1e9, "StoreOptions::wait_timeout_s"};

class ProgressEngine {
 public:
  // The payload goes when the engine ends: that withdraws what is offered, and ends copies from arrays that may go
  // then.
  ProgressEngine(Transport& transport, std::unique_ptr<BulkTransport>& bulk, ProgressDriver& driver);
  ~ProgressEngine();

  // For the thread that makes progress, and before start().
  Messenger& messenger() { return messenger_; }
  // Any thread; what is counted, and which devices something adds up between.
  Messenger const& messenger() const { return messenger_; }

  // Begins to make progress; nothing where it has begun. Any thread.
  void start();
  bool is_started() const { return started_; }

  // Does `task` in progress, some time. Any thread.
  void post(std::function<void()> task);
  // The same for a thread that holds no lock which progress takes: it may make the progress itself.
  void post_soon(std::function<void()> task);
  // Does `task` in progress and waits for it; what it throws is thrown here, and harms nothing else.
  void wait_invoke(std::function<void()> const& task);
  // Blocks until done() is true; throws what went wrong meanwhile, and PeerError when nothing happens for as long as a
  // peer may stay silent. `done` must be cheap.
  void wait(std::function<bool()> const& done, WaitLimit const& limit);

  bool has_failed() const { return failed_; }
  // Throws what has gone wrong.
  void throw_if_failed();

  // Blocks until this rank owes nothing on the channel, then closes it: the other ranks learn that nothing follows.
  // Also for a channel that was never opened.
  void wait_close(ChannelId id, WaitLimit const& limit);
  // Stops at once, whatever is under way: its memory may go then. Later calls throw an Error that says why. Whoever
  // calls it tells the others.
  void abandon(char const* why);
  // Closes all channels, where nothing has gone wrong and no exception is on its way, stops, and leaves the other
  // ranks. Once; later calls do nothing.
  void end(WaitLimit const& limit) noexcept;

 private:
  bool progress();
  bool take_posts();
  bool has_posts();
  // REQUIRES of the rest: progressing_ is held.
  void publish();
  void fail(std::exception_ptr error) noexcept;
  struct Slowest {
    Rank rank;         // that is awaited, or this one
    std::string text;  // "rank 0 awaited the gradients of step 7 from rank 1"
  };
  Slowest slowest() const;

  Transport& transport_;
  std::unique_ptr<BulkTransport>& bulk_;
  ProgressDriver& driver_;
  Rank const me_;
  Messenger messenger_;
  int const exceptions_at_start_;

  std::mutex progressing_;                 // held while progress is made: for looking at channels from outside
  std::array<bool, kChannels> closing_{};  // to be closed as soon as it is idle

  std::mutex mutex_;  // guards the two below
  std::vector<std::function<void()>> posts_;
  std::exception_ptr failure_;

  std::mutex starting_;
  std::atomic<bool> started_ = false;
  std::atomic<bool> failed_ = false;  // failure_ is set
  std::array<std::atomic<bool>, kChannels> closed_{};
  std::atomic<bool> idle_ = true;  // no message waits for room, and no transfer is on its way
  bool abandoned_ = false, ended_ = false;
};

}  // namespace gpups::comm
