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

class Simulator {
 public:
  Simulator(int ranks, Simulation const& options);

  std::shared_ptr<SimNetwork> const& network() const { return network_; }

  // Runs a rank's body when it is its time. Starts when all ranks have called it.
  void run(Rank rank, std::function<void()> const& body);

  // What ProgressDriver says, for one rank.
  void start(Rank rank, std::function<bool()> progress) {
    rank_state(rank).progress = std::move(progress);
    wake(rank);
  }
  void wake(Rank rank) { rank_state(rank).woken = true; }
  bool wait(Rank rank, std::function<bool()> const& done);
  void stop(Rank rank) { rank_state(rank).progress = nullptr; }

 private:
  enum class State { kOut, kReady, kRunning, kWaiting };
  struct SimRank {
    State state = State::kOut;
    std::function<bool()> progress;
    std::atomic<bool> woken = false;
    std::uint64_t stalled_until_us = 0;
    std::function<bool()> const* done = nullptr;  // while waiting
    bool condition_met = true;                    // what wait() returns
    std::condition_variable scheduled;
  };
  // One thing that can happen.
  struct SimChoice {
    SimNetwork::SimEventKind event;
    std::size_t rank = 0;
    SimNetwork::SimRoute route{};
    std::uint64_t time_us = 0;
  };

  SimRank& rank_state(Rank rank) { return rank_states_[number(rank)]; }
  // Gives the turn to run to the rank that is chosen next; then waits until it is this one's.
  void schedule_next();
  void wait_until_scheduled(Rank rank);
  std::vector<SimChoice> possible_choices();
  void progress(std::size_t rank);
  // A rank that stalls neither turns nor runs for a while.
  void maybe_stall(SimRank& rank_state);
  // Nothing can happen any more: all waits end.
  void end_all_waits();

  Simulation const options_;
  std::shared_ptr<SimNetwork> const network_;
  std::mutex mutex_;  // of the two below; all else is touched by the running rank only
  std::size_t ranks_entered_ = 0;
  std::size_t running_rank_;
  std::vector<SimRank> rank_states_;
};

}  // namespace gpups::comm
