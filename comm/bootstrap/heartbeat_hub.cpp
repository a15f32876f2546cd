// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/failure_detector.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>

#include "comm/base/peer_error.hpp"
#include "comm/base/serialization.hpp"
#include "comm/bootstrap/connection.hpp"
#include "comm/bootstrap/membership.hpp"
#include "comm/bootstrap/socket.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

constexpr std::size_t kBodyBytesMax = std::size_t{1} << 16;
constexpr std::size_t kWhyBytesMax = std::size_t{1} << 14;
constexpr double kFlush_s = 0.2;
constexpr char const* kInvalidFrame = "it sent an invalid message";

// The rank at the other end of a connection.
struct Peer {
  Rank rank{};
  Connection connection;
  TimePoint received_at{};
  TimePoint send_progress_at{};  // the last time at which queued bytes were sent, or none were queued
  std::size_t sent_bytes = 0;
};

// The failure detector of a rank. On rank 0 it is the hub, with a connection to each other rank.
class HeartbeatFailureDetector final : public FailureDetector {
 public:
  HeartbeatFailureDetector(Rank mine, std::uint32_t size, std::vector<Connection> connections,
                           FailureDetectorOptions const& options)
      : mine_(mine),
        size_(size),
        timeout_s_(options.peer_timeout_s),
        heartbeat_interval_s_(std::min(timeout_s_ / 4, 1.0)),
        membership_(mine, size),
        wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        all_left_(size == 1) {
    GPUPS_REQUIRE(wake_.is_open(),
                  "no event descriptor can be created (the failure detector needs one): raise the limit of open files");
    for (std::uint32_t rank = 0; rank < connections.size(); ++rank) {
      connections[rank].set_body_bytes_max(kBodyBytesMax);
      if (!connections[rank].is_open()) continue;
      peers_.push_back({.rank = Rank{rank},
                        .connection = std::move(connections[rank]),
                        .received_at = now(),
                        .send_progress_at = now()});
    }
    thread_ = std::thread([this] { run(); });
  }

  ~HeartbeatFailureDetector() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake();
    thread_.join();
  }

  void subscribe(Events events) override {
    std::lock_guard exclusive(delivering_);
    {
      std::lock_guard lock(mutex_);
      listener_ = std::move(events);
    }
    wake();
  }

  void leave(Rank at_fault, std::string const& why) override {
    {
      std::lock_guard lock(mutex_);
      bool const is_regular = why.empty();
      if (has_failed_ || (has_left_ && is_regular)) return;
      (is_regular ? has_left_ : has_failed_) = true;
      own_updates_.push_back({.by = mine_, .rank = is_regular ? mine_ : at_fault, .why = why.substr(0, kWhyBytesMax)});
    }
    wake();
  }

  bool wait_all_left(double timeout_s) override {
    std::unique_lock lock(mutex_);
    all_left_condition_.wait_until(lock, after(now(), timeout_s), [this] { return all_left_ || disconnected_; });
    return all_left_;
  }

 private:
  bool is_hub() const { return mine_ == Rank{0}; }

  void wake() {
    std::uint64_t const one = 1;
    (void)!write(wake_.fd(), &one, sizeof one);
  }

  void run() {
    bool stopping = false;
    while (!stopping) {
      wait_for_events();
      TimePoint const before = std::exchange(woke_at_, now());
      // If this process was stopped, it has read no heartbeats meanwhile, and other ranks may have been stopped with
      // it.
      if (woke_at_ > after(before, 3 * heartbeat_interval_s_)) extend_timeouts();
      for (Peer& peer : peers_) exchange_with(peer);
      stopping = send_own_updates();
      for (Peer& peer : peers_) check_timeout(peer);
      send_heartbeats();
      for (Peer& peer : peers_) {
        if (peer.connection.has_outgoing()) exchange_with(peer);
      }
      deliver();
    }
    flush();
  }

  void wait_for_events() {
    std::vector<pollfd> poll_fds{{wake_.fd(), POLLIN, 0}};
    for (Peer const& peer : peers_) {
      if (!peer.connection.is_open()) continue;
      short const events = peer.connection.has_outgoing() ? POLLIN | POLLOUT : POLLIN;
      poll_fds.push_back({peer.connection.fd(), events, 0});
    }
    (void)poll(poll_fds.data(), poll_fds.size(), milliseconds_until(after(heartbeat_at_, heartbeat_interval_s_)));
    std::uint64_t count = 0;
    (void)!read(wake_.fd(), &count, sizeof count);
  }

  // Allows one heartbeat interval for other ranks to send, and one for the heartbeat to arrive.
  void extend_timeouts() {
    TimePoint const at_least = after(woke_at_, 2 * heartbeat_interval_s_) -
                               std::chrono::duration_cast<TimePoint::duration>(FloatSeconds(timeout_s_));
    for (Peer& peer : peers_) {
      peer.received_at = std::max(peer.received_at, at_least);
      peer.send_progress_at = std::max(peer.send_progress_at, at_least);
    }
  }

  // Sends and reads what is possible now, and handles the received frames.
  void exchange_with(Peer& peer) {
    if (!peer.connection.is_open()) return;
    std::string const ended = peer.connection.exchange();
    if (std::exchange(peer.sent_bytes, peer.connection.sent_bytes()) != peer.connection.sent_bytes() ||
        !peer.connection.has_outgoing()) {
      peer.send_progress_at = now();
    }
    try {
      while (auto const frame = peer.connection.next()) {
        peer.received_at = now();
        suspects_own_link_ = false;
        if (frame->kind == FrameKind::kMembershipUpdate)
          on_update(peer, decode_membership_update(frame->body));
        else if (frame->kind != FrameKind::kAlive)
          throw FrameError(kInvalidFrame);
      }
    } catch (Error const&) {  // a wrong MAC or invalid content
      peer.connection.close();
      if (!membership_.is_lost(peer.rank)) mark_failed(peer, kInvalidFrame);
      return;
    }
    if (ended.empty()) return;
    peer.connection.close();
    if (membership_.is_alive(peer.rank)) mark_failed(peer, ended);
  }

  void on_update(Peer& peer, MembershipUpdate update) {
    update.why = peer_text(update.why, kWhyBytesMax);
    if (!membership_.is_valid(update) || (is_hub() && update.by != peer.rank)) throw FrameError(kInvalidFrame);
    if (membership_.is_lost(peer.rank)) return;  // already reported to all ranks as lost
    membership_.apply(update);
    forward(update);
  }

  void mark_failed(Peer& peer, std::string const& why) {
    MembershipUpdate const update{.by = peer.rank, .rank = peer.rank, .why = why};
    membership_.apply(update);
    forward(update);
    // It may still be alive, and would wait for other ranks.
    if (is_hub() && peer.connection.is_open()) {
      peer.connection.put(FrameKind::kMembershipUpdate,
                          encode(MembershipUpdate{.by = mine_, .rank = peer.rank, .why = why}));
    }
  }

  void forward(MembershipUpdate const& update) {
    if (!is_hub()) return;
    for (Peer& peer : peers_) {
      if (peer.rank != update.by && peer.connection.is_open())
        peer.connection.put(FrameKind::kMembershipUpdate, encode(update));
    }
  }

  // Returns whether the thread should end.
  bool send_own_updates() {
    std::vector<MembershipUpdate> updates;
    bool stopping = false;
    {
      std::lock_guard lock(mutex_);
      updates.swap(own_updates_);
      stopping = stopping_;
    }
    for (MembershipUpdate const& update : updates) {
      for (Peer& peer : peers_) {
        if (peer.connection.is_open()) peer.connection.put(FrameKind::kMembershipUpdate, encode(update));
      }
    }
    return stopping;
  }

  void send_heartbeats() {
    if (now() < after(heartbeat_at_, heartbeat_interval_s_)) return;
    heartbeat_at_ = now();
    for (Peer& peer : peers_) {
      if (peer.connection.is_open() && !peer.connection.has_outgoing()) peer.connection.put(FrameKind::kAlive, {});
    }
  }

  // Returns whether the peer has sent nothing, or read nothing, for so long. Measured at the wakeup, because
  // everything that had arrived by then has been read; this thread may have been stopped since.
  bool is_silent(Peer const& peer, double for_s) const {
    return woke_at_ > after(std::min(peer.received_at, peer.send_progress_at), for_s);
  }

  void check_timeout(Peer& peer) {
    if (!peer.connection.is_open() || !membership_.is_alive(peer.rank) || !is_silent(peer, timeout_s_)) return;
    if (is_hub() && size_ > 2 && !suspects_own_link_) {
      auto const counts = [this](Peer const& other) { return membership_.is_alive(other.rank); };
      auto const silent = [this](Peer const& other) { return is_silent(other, timeout_s_ / 2); };
      suspects_own_link_ =
          std::count_if(peers_.begin(), peers_.end(), counts) > 1 &&
          std::all_of(peers_.begin(), peers_.end(), [&](Peer const& other) { return !counts(other) || silent(other); });
    }
    std::string why = fmt::format("no heartbeat from it for {} s", timeout_s_);
    if (!is_hub()) {
      why += ": it hangs, or the link of its machine or of this one is cut";
    } else if (suspects_own_link_) {
      why += ", nor from any other rank: the link of rank 0's own machine is probably cut";
    } else {
      why += ": it hangs, or its link is cut";
    }
    mark_failed(peer, why);
  }

  void deliver() {
    std::lock_guard delivering(delivering_);
    std::vector<Membership::Change> events = membership_.take_changes();
    Events listener;
    {
      std::lock_guard lock(mutex_);
      std::move(events.begin(), events.end(), std::back_inserter(undelivered_));
      events.clear();
      if (listener_.lost || listener_.left) {
        events.swap(undelivered_);
        listener = listener_;
      }
      all_left_ = membership_.is_alone();
      disconnected_ =
          std::none_of(peers_.begin(), peers_.end(), [](Peer const& peer) { return peer.connection.is_open(); });
    }
    // Without the lock, since these functions may call leave().
    for (Membership::Change const& event : events) {
      if (event.why.empty() && listener.left) listener.left(event.rank);
      if (!event.why.empty() && listener.lost) listener.lost(event.rank, event.why);
    }
    all_left_condition_.notify_all();
  }

  // Sends the queued frames and waits until the other end closes, too; otherwise closing could overtake them.
  void flush() {
    TimePoint const until = after(now(), kFlush_s);
    for (;;) {
      std::vector<pollfd> poll_fds;
      for (Peer& peer : peers_) {
        if (!peer.connection.is_open()) continue;
        bool const is_over = !peer.connection.exchange().empty();
        if (is_over) {
          peer.connection.close();
          continue;
        }
        if (!peer.connection.has_outgoing()) peer.connection.end_sending();
        short const events = peer.connection.has_outgoing() ? POLLIN | POLLOUT : POLLIN;
        poll_fds.push_back({peer.connection.fd(), events, 0});
      }
      if (poll_fds.empty() || now() >= until) return;
      (void)poll(poll_fds.data(), poll_fds.size(), milliseconds_until(until));
    }
  }

  // Used only by the thread once it runs.
  Rank const mine_;
  std::uint32_t const size_;
  double const timeout_s_, heartbeat_interval_s_;
  std::vector<Peer> peers_;  // on rank 0: all other ranks; on other ranks: rank 0
  Membership membership_;
  TimePoint woke_at_ = now();
  TimePoint heartbeat_at_{};        // in the past, so that the first heartbeat is sent at once
  bool suspects_own_link_ = false;  // no rank has sent anything for long

  Socket wake_;  // an event descriptor

  std::mutex delivering_;  // held while the listener is called, so that subscribe() returns after the former one
  std::mutex mutex_;
  std::condition_variable all_left_condition_;
  Events listener_;
  std::vector<Membership::Change> undelivered_;  // events before the first subscribe()
  std::vector<MembershipUpdate> own_updates_;
  bool has_left_ = false, has_failed_ = false;  // by leave(): in order, because of a failure
  bool stopping_ = false;
  bool all_left_ = false;
  bool disconnected_ = false;  // all connections are closed

  std::thread thread_;
};

}  // namespace

std::unique_ptr<FailureDetector> make_failure_detector(Rank mine, std::uint32_t size,
                                                       std::vector<Connection> connections,
                                                       FailureDetectorOptions const& options) {
  return std::make_unique<HeartbeatFailureDetector>(mine, size, std::move(connections), options);
}

}  // namespace gpups::comm
