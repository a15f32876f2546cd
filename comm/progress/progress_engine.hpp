// SPDX-License-Identifier: Apache-2.0
// The progress engine of a rank: runs the tasks that threads post, gives messages to their channels, lets threads wait,
// and reports errors to the other ranks. All of this happens in progress(), which any thread may call (see
// comm/progress/progress_driver.hpp); calls exclude each other.
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

// The time for which a rank waits for a peer without progress.
struct WaitLimit {
  double seconds;
  char const* setting;  // the setting with which a user allows more time, for the error text
};
// For waits that may take very different times on the ranks, or that no peer can delay.
inline constexpr WaitLimit kNoLimit{1e9, "StoreOptions::wait_timeout_s"};

// The progress engine of one rank.
class ProgressEngine {
 public:
  // When the engine ends, it destroys the bulk transport. This withdraws offered data and stops copies from arrays that
  // may be freed then.
  ProgressEngine(Transport& transport, std::unique_ptr<BulkTransport>& bulk, ProgressDriver& driver);
  ~ProgressEngine();

  // For the thread that makes progress, and for other threads before start().
  Messenger& messenger() { return messenger_; }
  // For any thread: counters() and can_allreduce().
  Messenger const& messenger() const { return messenger_; }

  // Starts to make progress. Does nothing if it was started before. Any thread.
  void start();
  bool is_started() const { return started_; }

  // Queues `task`, which the next progress runs. Any thread.
  void post(std::function<void()> task);
  // The same for a thread that holds no lock which progress takes: the call may make the progress itself.
  void post_soon(std::function<void()> task);
  // Runs `task` in progress and blocks until it has ended. Rethrows its exception, which does not end the engine.
  void wait_invoke(std::function<void()> const& task);
  // Blocks until done() is true. `done` must be cheap. Throws the error of the engine, and PeerError if nothing happens
  // for the time of the limit.
  void wait(std::function<bool()> const& done, WaitLimit const& limit);

  bool has_failed() const { return failed_; }
  // Throws the error of the engine, if it has failed.
  void throw_if_failed();

  // Blocks until this rank has sent everything on the channel, then closes the channel and informs the other ranks.
  // Also for a channel that was never opened.
  void wait_close(ChannelId id, WaitLimit const& limit);
  // Stops at once, also with transfers in flight, whose memory may be freed afterwards. Later calls throw an Error with
  // `why`. The caller must inform the other ranks.
  void abandon(char const* why);
  // Closes all channels unless there was an error or an exception is being thrown, stops, and leaves the other ranks.
  // Also without start(), so that ranks that wait for this one get an error. Later calls do nothing.
  void end(WaitLimit const& limit) noexcept;

 private:
  bool progress();
  bool take_posts();
  bool has_posts();
  void wait_close_all(WaitLimit const& limit);
  // REQUIRES of the functions below: progressing_ is held.
  void publish();
  void fail(std::exception_ptr error) noexcept;
  struct Slowest {
    Rank rank;         // that this rank waits for, or this rank
    std::string text;  // "rank 0 waited for the gradients of step 7 from rank 1"
  };
  Slowest slowest() const;
  // Returns a possible reason why nothing arrives from the rank, such as another collective call that it has made.
  std::string why_silent(Rank peer) const;

  Transport& transport_;
  std::unique_ptr<BulkTransport>& bulk_;
  ProgressDriver& driver_;
  Rank const me_;
  Messenger messenger_;
  int const exceptions_at_start_;

  std::mutex progressing_;                 // held while progress is made or channels are read
  std::array<bool, kChannels> closing_{};  // channels to close as soon as they are idle

  std::mutex mutex_;  // guards the two below
  std::vector<std::function<void()>> posts_;
  std::exception_ptr failure_;

  std::mutex starting_;
  std::atomic<bool> started_ = false;
  std::atomic<bool> failed_ = false;  // failure_ is set
  std::array<std::atomic<bool>, kChannels> closed_{};
  std::atomic<bool> idle_ = true;            // no message is queued, and no transfer is in flight
  std::atomic<bool> closed_by_all_ = false;  // no other rank sends or receives any more
  bool abandoned_ = false, ended_ = false;
};

}  // namespace gpups::comm
