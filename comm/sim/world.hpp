// SPDX-License-Identifier: Apache-2.0
// A simulated group's ranks, of which one runs at a time. Whenever the running one has to wait, it lets things happen
// in an order that the seed decides, until a rank whose wait is over is chosen to run next.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/sim/network.hpp"

namespace gpups::comm {

class SimWorld {
 public:
  SimWorld(int ranks, Simulation const& options);

  std::shared_ptr<SimNetwork> const& network() const { return network_; }

  // Runs a rank's body when it is its time. Starts when all ranks have called it.
  void run(Rank rank, std::function<void()> const& body);

  // What Turner says, for one rank.
  void start(Rank rank, std::function<bool()> turn) {
    member(rank).turn = std::move(turn);
    wake(rank);
  }
  void wake(Rank rank) { member(rank).woken = true; }
  bool wait(Rank rank, std::function<bool()> const& done);
  void stop(Rank rank) { member(rank).turn = nullptr; }

 private:
  enum class State { kOut, kReady, kRunning, kWaiting };
  struct Member {
    State state = State::kOut;
    std::function<bool()> turn;
    std::atomic<bool> woken = false;
    std::uint64_t stalled_until_us = 0;
    std::function<bool()> const* done = nullptr;  // while waiting
    bool in_time = true;                          // what wait() returns
    std::condition_variable chosen;
  };
  // One thing that can happen.
  struct Step {
    SimNetwork::Event event;
    std::size_t rank = 0;
    SimNetwork::Channel channel{};
    std::uint64_t time_us = 0;
  };

  Member& member(Rank rank) { return members_[number(rank)]; }
  // Gives the turn to run to the rank that is chosen next; then waits until it is this one's.
  void hand_over();
  void wait_until_chosen(Rank rank);
  std::vector<Step> possible_steps();
  void turn(std::size_t rank);
  // A rank that stalls neither turns nor runs for a while.
  void maybe_stall(Member& member);
  // Nothing can happen any more: all waits end.
  void give_up();

  Simulation const options_;
  std::shared_ptr<SimNetwork> const network_;
  std::mutex mutex_;  // of the two below; all else is touched by the running rank only
  std::size_t entered_ = 0;
  std::size_t running_;
  std::vector<Member> members_;
};

}  // namespace gpups::comm
