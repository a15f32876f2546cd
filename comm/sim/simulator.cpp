// SPDX-License-Identifier: Apache-2.0
#include "comm/sim/simulator.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

constexpr std::size_t kNoRank = ~std::size_t{0};

}  // namespace

Simulator::Simulator(int ranks, Simulation const& options)
    : options_(options),
      network_(std::make_shared<SimNetwork>(options)),
      running_rank_(kNoRank),
      rank_states_(static_cast<std::size_t>(ranks)) {}

void Simulator::run(Rank rank, std::function<void()> const& body) {
  bool last;
  {
    std::lock_guard lock(mutex_);
    rank_state(rank).state = State::kReady;
    last = ++ranks_entered_ == rank_states_.size();
  }
  if (last) {
    network_->set_simulated(true);
    schedule_next();
  }
  wait_until_scheduled(rank);
  struct Leave {
    Simulator& simulator;
    Rank rank;
    ~Leave() {
      simulator.rank_state(rank).state = State::kOut;
      simulator.schedule_next();
    }
  } const leave{*this, rank};
  body();
}

bool Simulator::wait(Rank rank, std::function<bool()> const& done) {
  SimRank& me = rank_state(rank);
  GPUPS_REQUIRE(
      me.state == State::kRunning,
      "rank {} of a simulated group waits outside of its body (simulated time would not advance): call run_ranks",
      number(rank));
  me.done = &done;
  me.state = State::kWaiting;
  maybe_stall(me);
  schedule_next();
  wait_until_scheduled(rank);
  return me.condition_met;
}

void Simulator::wait_until_scheduled(Rank rank) {
  std::unique_lock lock(mutex_);
  SimRank& me = rank_state(rank);
  me.scheduled.wait(lock, [&] { return running_rank_ == number(rank); });
  me.state = State::kRunning;
}

void Simulator::schedule_next() {
  std::size_t next = kNoRank;
  auto const active = [](SimRank const& m) { return m.state == State::kReady || m.state == State::kWaiting; };
  while (next == kNoRank && std::any_of(rank_states_.begin(), rank_states_.end(), active)) {
    std::vector<SimChoice> const choices = possible_choices();
    if (choices.empty()) {
      end_all_waits();
      continue;
    }
    SimChoice const& choice = choices[network_->random().below(choices.size())];
    switch (choice.event) {
      case EventKind::kResume:
        next = choice.rank;
        break;
      case EventKind::kProgress:
        progress(choice.rank);
        break;
      case EventKind::kDeliver:
        network_->deliver(choice.route);
        break;
      default:
        network_->advance_to(choice.time_us);
    }
  }
  if (next == kNoRank) network_->set_simulated(false);
  std::lock_guard lock(mutex_);
  if (next == kNoRank) {
    ranks_entered_ = 0;
  } else {
    rank_states_[next].scheduled.notify_one();
  }
  running_rank_ = next;
}

std::vector<Simulator::SimChoice> Simulator::possible_choices() {
  std::vector<SimChoice> choices;
  std::optional<std::uint64_t> later_us = network_->next_us();
  for (std::size_t rank = 0; rank < rank_states_.size(); ++rank) {
    SimRank& m = rank_states_[rank];
    if (m.stalled_until_us > network_->now_us()) {
      later_us = std::min(later_us.value_or(m.stalled_until_us), m.stalled_until_us);
      continue;
    }
    if (m.state == State::kWaiting && (*m.done)()) {
      m.state = State::kReady;
      m.condition_met = true;
    }
    if (m.state == State::kReady) choices.push_back({.event = EventKind::kResume, .rank = rank});
    if (m.progress && m.woken) choices.push_back({.event = EventKind::kProgress, .rank = rank});
  }
  for (auto const& route : network_->due()) choices.push_back({.event = EventKind::kDeliver, .route = route});
  if (later_us) choices.push_back({.event = EventKind::kPass, .time_us = *later_us});
  return choices;
}

void Simulator::maybe_stall(SimRank& m) {
  if (!network_->random().chance(options_.stall_probability)) return;
  auto const stall_us_max = static_cast<std::uint64_t>(options_.stall_ms_max * 1000);
  m.stalled_until_us = network_->now_us() + network_->random().below(stall_us_max + 1);
}

void Simulator::progress(std::size_t rank) {
  SimRank& m = rank_states_[rank];
  m.woken = false;
  if (m.progress()) m.woken = true;
  maybe_stall(m);
}

void Simulator::end_all_waits() {
  for (SimRank& m : rank_states_) {
    if (m.state != State::kWaiting) continue;
    m.state = State::kReady;
    m.condition_met = false;
  }
}

}  // namespace gpups::comm
