// SPDX-License-Identifier: Apache-2.0
// The threads of the ranks of a simulated group, of which one runs at a time. When the running rank must wait, it makes
// events happen in an order that the seed determines, until a rank whose wait is over is chosen to run next.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/progress/progress_driver.hpp"
#include "comm/sim/network.hpp"

namespace gpups::comm {

// Shared by all ranks of the group.
class Simulator {
 public:
  // Throws Error if an option is out of range.
  Simulator(int ranks, Simulation const& options);

  std::shared_ptr<SimNetwork> const& network() const { return network_; }

  // Runs `body` as this rank, whenever the rank is scheduled. Starts once all ranks have called it.
  void run(Rank rank, std::function<void()> const& body);

  // The functions of ProgressDriver, for one rank.
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
    std::function<bool()> const* done = nullptr;  // while it waits
    bool condition_met = true;                    // the result of wait()
    std::condition_variable scheduled;
  };
  // An event that can happen next.
  enum class EventKind { kResume, kProgress, kDeliver, kPass };
  struct SimChoice {
    EventKind event;
    std::size_t rank = 0;
    SimNetwork::SimRoute route{};
    std::uint64_t time_us = 0;
  };

  SimRank& rank_state(Rank rank) { return rank_states_[number(rank)]; }
  // Makes events happen until a rank is chosen to run, and wakes it up. wait_until_scheduled() blocks until this rank
  // is chosen.
  void schedule_next();
  void wait_until_scheduled(Rank rank);
  // Returns the events that can happen now.
  std::vector<SimChoice> possible_choices();
  void progress(std::size_t rank);
  // Stalls a rank at random: it makes no progress and does not run for a while.
  void maybe_stall(SimRank& rank_state);
  // Ends all waits without success, when no event is possible.
  void end_all_waits();

  Simulation const options_;
  std::shared_ptr<SimNetwork> const network_;
  std::mutex mutex_;  // protects the two below; only the running rank uses the rest
  std::size_t ranks_entered_ = 0;
  std::size_t running_rank_;
  std::vector<SimRank> rank_states_;
};

// The progress driver of one rank; forwards to the simulator.
class SimProgressDriver final : public ProgressDriver {
 public:
  SimProgressDriver(Rank rank, std::shared_ptr<Simulator> simulator) : rank_(rank), simulator_(std::move(simulator)) {}
  ~SimProgressDriver() override { SimProgressDriver::stop(); }

  void start(std::function<bool()> progress) override { simulator_->start(rank_, std::move(progress)); }
  void wake() override { simulator_->wake(rank_); }
  bool wait(std::function<bool()> const& done, double) override { return simulator_->wait(rank_, done); }
  void stop() override { simulator_->stop(rank_); }

 private:
  Rank const rank_;
  std::shared_ptr<Simulator> const simulator_;
};

}  // namespace gpups::comm
