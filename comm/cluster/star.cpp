// SPDX-License-Identifier: Apache-2.0
#include "comm/cluster/star.hpp"

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

#include "comm/cluster/ledger.hpp"
#include "comm/cluster/socket.hpp"
#include "comm/peer_text.hpp"
#include "comm/wire.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {
namespace {

constexpr std::size_t kBodyBytesMax = std::size_t{1} << 16;
constexpr std::size_t kWhyBytesMax = std::size_t{1} << 14;
constexpr double kFlush_s = 0.2;
constexpr char const* kWrong = "it sent what cannot be right";

// The rank at the other end of a connection.
struct Peer {
  Rank rank{};
  Link link;
  Time heard_at{};
  Time moved_at{};  // when it last took something of what waits for it, or nothing waited
  std::size_t sent_bytes = 0;
};

class Star final : public Watch {
 public:
  Star(Rank mine, std::uint32_t size, std::vector<Link> links, WatchOptions const& options)
      : mine_(mine),
        size_(size),
        timeout_s_(options.peer_timeout_s),
        beat_s_(std::min(timeout_s_ / 4, 1.0)),
        ledger_(mine, size),
        wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        all_gone_(size == 1) {
    GPUPS_REQUIRE(wake_.is_open(),
                  "no event descriptor can be made (the watch needs one): raise the limit of open files");
    for (std::uint32_t rank = 0; rank < links.size(); ++rank) {
      links[rank].set_body_bytes_max(kBodyBytesMax);
      if (!links[rank].is_open()) continue;
      peers_.push_back({.rank = Rank{rank}, .link = std::move(links[rank]), .heard_at = now(), .moved_at = now()});
    }
    thread_ = std::thread([this] { run(); });
  }

  ~Star() override {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake();
    thread_.join();
  }

  void listen(Events events) override {
    std::lock_guard not_meanwhile(delivering_);
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
      to_say_.push_back({.by = mine_, .rank = is_regular ? mine_ : at_fault, .why = why.substr(0, kWhyBytesMax)});
    }
    wake();
  }

  bool wait_all_gone(double timeout_s) override {
    std::unique_lock lock(mutex_);
    gone_.wait_until(lock, after(now(), timeout_s), [this] { return all_gone_ || deaf_; });
    return all_gone_;
  }

 private:
  bool is_middle() const { return mine_ == Rank{0}; }

  void wake() {
    std::uint64_t const one = 1;
    (void)!write(wake_.fd(), &one, sizeof one);
  }

  void run() {
    bool stopping = false;
    while (!stopping) {
      wait_for_something();
      Time const before = std::exchange(woke_at_, now());
      // Who was stopped itself has heard nothing of others, who may have spoken all the time or been stopped with it.
      if (woke_at_ > after(before, 3 * beat_s_)) forgive();
      for (Peer& peer : peers_) hear(peer);
      stopping = say_own();
      for (Peer& peer : peers_) judge(peer);
      beat();
      for (Peer& peer : peers_) {
        if (peer.link.has_outgoing()) hear(peer);
      }
      deliver();
    }
    flush();
  }

  void wait_for_something() {
    std::vector<pollfd> waiting{{wake_.fd(), POLLIN, 0}};
    for (Peer const& peer : peers_) {
      if (!peer.link.is_open()) continue;
      short const events = peer.link.has_outgoing() ? POLLIN | POLLOUT : POLLIN;
      waiting.push_back({peer.link.fd(), events, 0});
    }
    (void)poll(waiting.data(), waiting.size(), milliseconds_until(after(beat_at_, beat_s_)));
    std::uint64_t count = 0;
    (void)!read(wake_.fd(), &count, sizeof count);
  }

  // One beat for the others to wake up and speak, one for it to arrive.
  void forgive() {
    Time const at_least =
        after(woke_at_, 2 * beat_s_) - std::chrono::duration_cast<Time::duration>(Seconds(timeout_s_));
    for (Peer& peer : peers_) {
      peer.heard_at = std::max(peer.heard_at, at_least);
      peer.moved_at = std::max(peer.moved_at, at_least);
    }
  }

  // Sends and reads what is possible now.
  void hear(Peer& peer) {
    if (!peer.link.is_open()) return;
    std::string const ended = peer.link.exchange();
    if (std::exchange(peer.sent_bytes, peer.link.sent_bytes()) != peer.link.sent_bytes() || !peer.link.has_outgoing()) {
      peer.moved_at = now();
    }
    try {
      while (auto const frame = peer.link.next()) {
        peer.heard_at = now();
        suspects_own_link_ = false;
        if (frame->kind == FrameKind::kNotice)
          take(peer, decode_notice(frame->body));
        else if (frame->kind != FrameKind::kAlive)
          throw FrameError(kWrong);
      }
    } catch (Error const&) {  // the seal, or what is in the frame
      peer.link.close();
      if (!ledger_.is_lost(peer.rank)) lose(peer, kWrong);
      return;
    }
    if (ended.empty()) return;
    peer.link.close();
    if (ledger_.is_there(peer.rank)) lose(peer, ended);
  }

  void take(Peer& peer, Notice notice) {
    notice.why = peer_text(notice.why, kWhyBytesMax);
    if (!ledger_.can_be(notice) || (is_middle() && notice.by != peer.rank)) throw FrameError(kWrong);
    if (ledger_.is_lost(peer.rank)) return;  // all have been told otherwise
    ledger_.apply(notice);
    relay(notice);
  }

  void lose(Peer& peer, std::string const& why) {
    Notice const notice{.by = peer.rank, .rank = peer.rank, .why = why};
    ledger_.apply(notice);
    relay(notice);
    // It may be alive after all, and would wait for the others.
    if (is_middle() && peer.link.is_open()) {
      peer.link.put(FrameKind::kNotice, encode(Notice{.by = mine_, .rank = peer.rank, .why = why}));
    }
  }

  void relay(Notice const& notice) {
    if (!is_middle()) return;
    for (Peer& peer : peers_) {
      if (peer.rank != notice.by && peer.link.is_open()) peer.link.put(FrameKind::kNotice, encode(notice));
    }
  }

  // Says whether this watch is to end.
  bool say_own() {
    std::vector<Notice> notices;
    bool stopping = false;
    {
      std::lock_guard lock(mutex_);
      notices.swap(to_say_);
      stopping = stopping_;
    }
    for (Notice const& notice : notices) {
      for (Peer& peer : peers_) {
        if (peer.link.is_open()) peer.link.put(FrameKind::kNotice, encode(notice));
      }
    }
    return stopping;
  }

  void beat() {
    if (now() < after(beat_at_, beat_s_)) return;
    beat_at_ = now();
    for (Peer& peer : peers_) {
      if (peer.link.is_open() && !peer.link.has_outgoing()) peer.link.put(FrameKind::kAlive, {});
    }
  }

  // Measured when this turn began, since all that had come by then has been read; this thread may have been stopped
  // since.
  bool is_silent(Peer const& peer, double for_s) const {
    return woke_at_ > after(std::min(peer.heard_at, peer.moved_at), for_s);
  }

  void judge(Peer& peer) {
    if (!peer.link.is_open() || !ledger_.is_there(peer.rank) || !is_silent(peer, timeout_s_)) return;
    if (is_middle() && size_ > 2 && !suspects_own_link_) {
      auto const counts = [this](Peer const& other) { return ledger_.is_there(other.rank); };
      auto const silent = [this](Peer const& other) { return is_silent(other, timeout_s_ / 2); };
      suspects_own_link_ =
          std::count_if(peers_.begin(), peers_.end(), counts) > 1 &&
          std::all_of(peers_.begin(), peers_.end(), [&](Peer const& other) { return !counts(other) || silent(other); });
    }
    std::string why = fmt::format("nothing was heard from it for {} s", timeout_s_);
    if (!is_middle()) {
      why += ": it hangs, or the link of its machine or of this one is cut";
    } else if (suspects_own_link_) {
      why += ", nor from any other rank: the link of rank 0's own machine is probably cut";
    } else {
      why += ": it hangs, or its link is cut";
    }
    lose(peer, why);
  }

  void deliver() {
    std::lock_guard delivering(delivering_);
    std::vector<Ledger::Event> events = ledger_.take_events();
    Events listener;
    {
      std::lock_guard lock(mutex_);
      std::move(events.begin(), events.end(), std::back_inserter(happened_));
      events.clear();
      if (listener_.lost || listener_.left) {
        events.swap(happened_);
        listener = listener_;
      }
      all_gone_ = ledger_.is_alone();
      deaf_ = std::none_of(peers_.begin(), peers_.end(), [](Peer const& peer) { return peer.link.is_open(); });
    }
    // Without the lock, since they may call leave().
    for (Ledger::Event const& event : events) {
      if (event.why.empty() && listener.left) listener.left(event.rank);
      if (!event.why.empty() && listener.lost) listener.lost(event.rank, event.why);
    }
    gone_.notify_all();
  }

  // What was said last goes out, and the other end closes too; else closing could overtake it.
  void flush() {
    Time const until = after(now(), kFlush_s);
    for (;;) {
      std::vector<pollfd> waiting;
      for (Peer& peer : peers_) {
        if (!peer.link.is_open()) continue;
        bool const is_over = !peer.link.exchange().empty();
        if (is_over) {
          peer.link.close();
          continue;
        }
        if (!peer.link.has_outgoing()) peer.link.end_sending();
        short const events = peer.link.has_outgoing() ? POLLIN | POLLOUT : POLLIN;
        waiting.push_back({peer.link.fd(), events, 0});
      }
      if (waiting.empty() || now() >= until) return;
      (void)poll(waiting.data(), waiting.size(), milliseconds_until(until));
    }
  }

  // Of the thread, once it runs.
  Rank const mine_;
  std::uint32_t const size_;
  double const timeout_s_, beat_s_;
  std::vector<Peer> peers_;  // rank 0: all others; others: rank 0
  Ledger ledger_;
  Time woke_at_ = now();
  Time beat_at_{};                  // long ago, so that the others hear at once
  bool suspects_own_link_ = false;  // nobody was heard for long

  Socket wake_;  // an event descriptor

  std::mutex delivering_;  // held while the listener is called, so that listen() ends when the former one is done
  std::mutex mutex_;
  std::condition_variable gone_;
  Events listener_;
  std::vector<Ledger::Event> happened_;  // and nobody listened
  std::vector<Notice> to_say_;
  bool has_left_ = false, has_failed_ = false;  // leave() was called
  bool stopping_ = false;
  bool all_gone_ = false;
  bool deaf_ = false;  // no connection is left by which anything could be heard

  std::thread thread_;
};

}  // namespace

std::unique_ptr<Watch> make_star(Rank mine, std::uint32_t size, std::vector<Link> links, WatchOptions const& options) {
  return std::make_unique<Star>(mine, size, std::move(links), options);
}

}  // namespace gpups::comm
