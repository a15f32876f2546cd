// SPDX-License-Identifier: Apache-2.0
#include "comm/sim/world.hpp"

#include <algorithm>

#include "kernels/check.hpp"

namespace gpups::comm {
namespace {

using Event = SimNetwork::Event;
constexpr std::size_t kNobody = ~std::size_t{0};

}  // namespace

SimWorld::SimWorld(int ranks, Simulation const& options)
    : options_(options),
      network_(std::make_shared<SimNetwork>(options)),
      running_(kNobody),
      members_(static_cast<std::size_t>(ranks)) {}

void SimWorld::run(Rank rank, std::function<void()> const& body) {
  bool last;
  {
    std::lock_guard lock(mutex_);
    member(rank).state = State::kReady;
    last = ++entered_ == members_.size();
  }
  if (last) {
    network_->simulating(true);
    hand_over();
  }
  wait_until_chosen(rank);
  struct Leave {
    SimWorld& world;
    Rank rank;
    ~Leave() {
      world.member(rank).state = State::kOut;
      world.hand_over();
    }
  } const leave{*this, rank};
  body();
}

bool SimWorld::wait(Rank rank, std::function<bool()> const& done) {
  Member& me = member(rank);
  GPUPS_REQUIRE(me.state == State::kRunning,
                "rank {} of a simulated group waits outside of its body (nobody would let time pass): call run_ranks",
                number(rank));
  me.done = &done;
  me.state = State::kWaiting;
  maybe_stall(me);
  hand_over();
  wait_until_chosen(rank);
  return me.in_time;
}

void SimWorld::wait_until_chosen(Rank rank) {
  std::unique_lock lock(mutex_);
  Member& me = member(rank);
  me.chosen.wait(lock, [&] { return running_ == number(rank); });
  me.state = State::kRunning;
}

void SimWorld::hand_over() {
  std::size_t next = kNobody;
  auto const active = [](Member const& m) { return m.state == State::kReady || m.state == State::kWaiting; };
  while (next == kNobody && std::any_of(members_.begin(), members_.end(), active)) {
    std::vector<Step> const steps = possible_steps();
    if (steps.empty()) {
      give_up();
      continue;
    }
    Step const& step = steps[network_->random().below(steps.size())];
    switch (step.event) {
      case Event::kResume:
        next = step.rank;
        break;
      case Event::kTurn:
        turn(step.rank);
        break;
      case Event::kDeliver:
        network_->deliver(step.channel);
        break;
      default:
        network_->pass_until(step.time_us);
    }
  }
  if (next == kNobody) network_->simulating(false);
  std::lock_guard lock(mutex_);
  if (next == kNobody) {
    entered_ = 0;
  } else {
    network_->note(Event::kResume, next);
    members_[next].chosen.notify_one();
  }
  running_ = next;
}

std::vector<SimWorld::Step> SimWorld::possible_steps() {
  std::vector<Step> steps;
  std::optional<std::uint64_t> later_us = network_->next_us();
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    Member& m = members_[rank];
    if (m.stalled_until_us > network_->now_us()) {
      later_us = std::min(later_us.value_or(m.stalled_until_us), m.stalled_until_us);
      continue;
    }
    if (m.state == State::kWaiting && (*m.done)()) {
      m.state = State::kReady;
      m.in_time = true;
    }
    if (m.state == State::kReady) steps.push_back({.event = Event::kResume, .rank = rank});
    if (m.turn && m.woken) steps.push_back({.event = Event::kTurn, .rank = rank});
  }
  for (auto const& channel : network_->due()) steps.push_back({.event = Event::kDeliver, .channel = channel});
  if (later_us) steps.push_back({.event = Event::kPass, .time_us = *later_us});
  return steps;
}

void SimWorld::maybe_stall(Member& m) {
  if (!network_->random().chance(options_.stall_probability)) return;
  auto const stall_us_max = static_cast<std::uint64_t>(options_.stall_ms_max * 1000);
  m.stalled_until_us = network_->now_us() + network_->random().below(stall_us_max + 1);
}

void SimWorld::turn(std::size_t rank) {
  Member& m = members_[rank];
  m.woken = false;
  bool const useful = m.turn();
  network_->note(Event::kTurn, 2 * rank + (useful ? 1 : 0));
  if (useful) m.woken = true;
  maybe_stall(m);
}

void SimWorld::give_up() {
  network_->note(Event::kGiveUp, 0);
  for (Member& m : members_) {
    if (m.state != State::kWaiting) continue;
    m.state = State::kReady;
    m.in_time = false;
  }
}

}  // namespace gpups::comm
