// SPDX-License-Identifier: Apache-2.0
#include "comm/progress/traffic_counters.hpp"

#include <algorithm>
#include <atomic>

namespace gpups::comm {
namespace {

constexpr TrafficKind kKinds[] = {&TrafficByKind::gradients,    &TrafficByKind::refreshes, &TrafficByKind::intents,
                                  &TrafficByKind::late_fetches, &TrafficByKind::moves,     &TrafficByKind::lookups,
                                  &TrafficByKind::allreduces,   &TrafficByKind::control};

// Only one thread at a time adds, so the addition need not be atomic.
void add(std::uint64_t& counter, std::uint64_t more) {
  std::atomic_ref<std::uint64_t> const shared(counter);
  shared.store(shared.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

void count(Traffic& traffic, TrafficKind kind, std::uint64_t bytes) {
  add(traffic.*kind, bytes);
  add(traffic.messages.*kind, 1);
}

void move_from_control(Traffic& traffic, TrafficKind kind, std::uint64_t bytes) {
  add(traffic.control, -bytes);  // wraps
  add(traffic.*kind, bytes);
}

TrafficByKind read(TrafficByKind const& counted) {
  TrafficByKind copy;
  for (auto const kind : kKinds) {
    // std::atomic_ref does not support constants; nothing is written.
    copy.*kind =
        std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(counted.*kind)).load(std::memory_order_relaxed);
  }
  return copy;
}

Traffic read(Traffic const& counted) {
  return {read(static_cast<TrafficByKind const&>(counted)), read(counted.messages)};
}

}  // namespace

void TrafficCounters::sent(Rank to, TrafficKind kind, std::uint64_t bytes) {
  count(peers_[number(to)].sent, kind, bytes);
}

void TrafficCounters::received(Rank from, TrafficKind kind, std::uint64_t bytes) {
  count(peers_[number(from)].received, kind, bytes);
}

void TrafficCounters::sent_within(Rank to, TrafficKind kind, std::uint64_t bytes) {
  move_from_control(peers_[number(to)].sent, kind, bytes);
}

void TrafficCounters::received_within(Rank from, TrafficKind kind, std::uint64_t bytes) {
  move_from_control(peers_[number(from)].received, kind, bytes);
}

void TrafficCounters::add_saved(TrafficKind kind, std::uint64_t bytes) { add(saved_bytes_.*kind, bytes); }

void TrafficCounters::subtract_saved(TrafficKind kind, std::uint64_t bytes) {
  add(saved_bytes_.*kind, -std::min(bytes, saved_bytes_.*kind));  // wraps; only this thread writes
}

void TrafficCounters::write(Stats& stats) const {
  stats.saved_bytes = read(saved_bytes_);
  stats.sent = stats.received = {};
  stats.peers.clear();
  for (PeerTraffic const& peer : peers_) {
    stats.peers.push_back({read(peer.sent), read(peer.received)});
    stats.sent += stats.peers.back().sent;
    stats.received += stats.peers.back().received;
  }
}

}  // namespace gpups::comm
