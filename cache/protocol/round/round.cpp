// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/round/round.hpp"

#include <fmt/core.h>

#include <algorithm>

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

void Round::end_step(StepReport const& own) {
  GPUPS_ASSERT(phase_ == Phase::kTraining);
  own_ = own;
  all_ = {};
  add(own);
  begin(Phase::kGradientPhase);
}

void Round::on_message(Rank from, Message const& message) {
  bool const in = message.kind == MessageKind::kGradientPhase;
  auto& peer = peers_[number(from)];
  auto& place = in ? peer.in : peer.out;
  // A peer is in the same phase or one phase ahead, because it needs this rank's message to end a phase.
  bool const fits = in ? (phase_ == Phase::kRefreshPhase ? message.clock == clock_ + 1 : message.clock == clock_)
                       : (phase_ != Phase::kTraining && message.clock == clock_);
  bool const repeated = peer.given && phase_ == (in ? Phase::kGradientPhase : Phase::kRefreshPhase);
  if (from == me_ || place != nullptr || repeated || !fits) {
    throw PeerError(
        from,
        fmt::format("rank {} sent the {} of step {} while rank {} is at step {} (ranks must make the same "
                    "steps): check that all ranks run the same program and configuration",
                    number(from), in ? "gradients" : "values", number(message.clock), number(me_), number(clock_)));
  }
  place = std::make_unique<Message>(message);
}

void Round::on_data_received(Rank from) {
  GPUPS_ASSERT(peers_[number(from)].given && !peers_[number(from)].taken);
  peers_[number(from)].taken = true;
}

bool Round::all_taken() const {
  return std::all_of(peers_.begin(), peers_.end(), [](Peer const& peer) { return peer.taken; });
}

std::optional<Round::Action> Round::next() {
  if (phase_ == Phase::kTraining) return std::nullopt;
  bool const in = phase_ == Phase::kGradientPhase;

  if (!sent_) {
    sent_ = true;
    return Action{.kind = in ? ActionKind::kSendGradients : ActionKind::kSendRefreshes};
  }
  for (std::size_t p = 0; p < peers_.size(); ++p) {
    auto& peer = peers_[p];
    auto& message = in ? peer.in : peer.out;
    if (peer.given || !message) continue;
    peer.given = true;
    Action action{.kind = in ? ActionKind::kReceiveGradients : ActionKind::kReceiveRefreshes,
                  .from = Rank{static_cast<std::uint32_t>(p)},
                  .message = std::move(*message)};
    message.reset();
    if (in) add({action.message.samples, action.message.signal, action.message.error});
    return action;
  }
  if (!all_taken()) return std::nullopt;
  GPUPS_ASSERT(applied_ == (in ? clock_ - 1 : clock_));  // a step is applied once, between its phases
  if (in) {
    applied_ = clock_;
    begin(Phase::kRefreshPhase);
    return Action{.kind = ActionKind::kApply};
  }
  phase_ = Phase::kTraining;
  clock_ = clock_ + 1;
  return Action{.kind = ActionKind::kComplete};
}

Clock Round::next_in() const {
  bool const has_sent_gradients = phase_ == Phase::kRefreshPhase || (phase_ == Phase::kGradientPhase && sent_);
  return has_sent_gradients ? clock_ + 1 : clock_;
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
  return phase_ != Phase::kTraining && !its.given && !(phase_ == Phase::kGradientPhase ? its.in : its.out);
}

std::string Round::pending_data() const {
  return fmt::format("the {} of step {}", phase_ == Phase::kRefreshPhase ? "values" : "gradients", number(clock_));
}

}  // namespace gpups::cache
