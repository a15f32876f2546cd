// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/round/round.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "gpups/error.hpp"
#include "kernels/base/check.hpp"

namespace gpups::cache {

Round::Round(Rank me, int ranks, Clock first)
    : me_(me), peers_(static_cast<std::size_t>(ranks)), clock_(first), applied_(first - 1) {}

void Round::begin(Phase phase) {
  phase_ = phase;
  sent_ = false;
  for (auto& peer : peers_) peer.given = peer.taken = false;
  peers_[number(me_)].given = peers_[number(me_)].taken = true;
}

void Round::add(StepReport const& report) {
  all_.samples += report.samples;
  all_.signal |= report.signal;
  if (all_.rejection.empty()) all_.rejection = report.rejection;
}

void Round::announce_first() {
  GPUPS_ASSERT(phase_ == Phase::kTraining && applied_ == clock_ - 1);
  announces_next_ = true;
}

void Round::begin_announcing() {
  GPUPS_ASSERT(announces_next_);
  announces_next_ = is_of_step_ = false;
  clock_ = clock_ - 1;
  applied_ = applied_ - 1;
  begin_round({});
}

void Round::end_step(StepReport const& own) {
  GPUPS_ASSERT(!announces_next_);
  is_of_step_ = true;
  begin_round(own);
}

void Round::begin_round(StepReport const& own) {
  GPUPS_ASSERT(phase_ == Phase::kTraining);
  own_ = own;
  all_ = {};
  add(own);
  begin(Phase::kGradientPhase);
}

// Throws PeerError for a message that does not fit, or that repeats one of the same phase. A peer is in the same phase
// or one phase ahead, because it needs this rank's message to end a phase.
void Round::check(Rank from, Phase of, Clock clock, bool fits) const {
  bool const repeated = peers_[number(from)].given && phase_ == of;
  if (from != me_ && fits && !repeated) return;
  throw PeerError(
      from, fmt::format("rank {} sent the {} of step {} while rank {} is at step {} (ranks must make the same "
                        "steps): check that all ranks run the same program and configuration",
                        number(from), of == Phase::kGradientPhase ? "gradients" : "values", number(clock), number(me_),
                        number(clock_)));
}

void Round::on_message(Rank from, GradientPhase const& message) {
  auto& place = peers_[number(from)].in;
  Clock const expected = phase_ == Phase::kRefreshPhase ? clock_ + 1 : next_round();
  check(from, Phase::kGradientPhase, message.clock, message.clock == expected && place == nullptr);
  place = std::make_unique<GradientPhase>(message);
}

void Round::on_message(Rank from, RefreshPhase const& message) {
  auto& place = peers_[number(from)].out;
  bool const in_round = phase_ != Phase::kTraining;
  check(from, Phase::kRefreshPhase, message.clock, in_round && message.clock == clock_ && place == nullptr);
  place = std::make_unique<RefreshPhase>(message);
}

void Round::on_data_received(Rank from) {
  GPUPS_ASSERT(peers_[number(from)].given && !peers_[number(from)].taken);
  peers_[number(from)].taken = true;
}

bool Round::all_taken() const {
  return std::all_of(peers_.begin(), peers_.end(), [](Peer const& peer) { return peer.taken; });
}

// Returns whether a message of this phase has arrived that next() has not returned.
bool Round::has_arrived(Peer const& peer) const {
  return phase_ == Phase::kGradientPhase ? peer.in != nullptr : peer.out != nullptr;
}

std::optional<Round::Action> Round::next() {
  if (phase_ == Phase::kTraining) return std::nullopt;
  bool const in = phase_ == Phase::kGradientPhase;

  if (!std::exchange(sent_, true)) {
    if (in) return SendGradients{};
    return SendRefreshes{};
  }
  for (std::uint32_t p = 0; p < peers_.size(); ++p) {
    auto& peer = peers_[p];
    if (peer.given || !has_arrived(peer)) continue;
    peer.given = true;
    if (!in) return ReceiveRefreshes{Rank{p}, std::move(*std::exchange(peer.out, nullptr))};
    ReceiveGradients action{Rank{p}, std::move(*std::exchange(peer.in, nullptr))};
    add(action.message.report);
    return action;
  }
  if (!all_taken()) return std::nullopt;
  GPUPS_ASSERT(applied_ == (in ? clock_ - 1 : clock_));  // a step is applied once, between its phases
  if (in) {
    applied_ = clock_;
    begin(Phase::kRefreshPhase);
    return Apply{};
  }
  phase_ = Phase::kTraining;
  clock_ = clock_ + 1;
  return Complete{};
}

Clock Round::next_in() const {
  bool const has_sent_gradients = phase_ == Phase::kRefreshPhase || (phase_ == Phase::kGradientPhase && sent_);
  return has_sent_gradients ? clock_ + 1 : next_round();
}

std::vector<Rank> Round::pending_peers() const {
  std::vector<Rank> ranks;
  if (phase_ == Phase::kTraining) return ranks;
  for (std::size_t p = 0; p < peers_.size(); ++p) {
    if (!peers_[p].taken) ranks.push_back(Rank{static_cast<std::uint32_t>(p)});
  }
  return ranks;
}

bool Round::lacks(Rank peer) const {
  Peer const& its = peers_[number(peer)];
  return phase_ != Phase::kTraining && !its.given && !has_arrived(its);
}

std::string Round::pending_data() const {
  if (!is_of_step_) return fmt::format("the announcements before step {}", number(complete_before()));
  return fmt::format("the {} of step {}", phase_ == Phase::kRefreshPhase ? "values" : "gradients", number(clock_));
}

}  // namespace gpups::cache
