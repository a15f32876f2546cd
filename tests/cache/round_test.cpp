// SPDX-License-Identifier: Apache-2.0
// The round's control flow, without any data.
#include "cache/protocol/round/round.hpp"

#include <gtest/gtest.h>

#include "gpups/error.hpp"

namespace gpups::cache::round_test {
namespace {

Message header(MessageKind kind, std::int64_t clock, std::uint64_t samples = 1, std::string error = {}) {
  return {.kind = kind, .clock = Clock{clock}, .samples = samples, .error = std::move(error)};
}

// Returns all actions that the round can take now. Data that it receives arrive at once.
std::vector<Round::ActionKind> run(Round& round) {
  std::vector<Round::ActionKind> steps;
  while (auto const action = round.next()) {
    steps.push_back(action->kind);
    bool const take =
        action->kind == Round::ActionKind::kReceiveGradients || action->kind == Round::ActionKind::kReceiveRefreshes;
    if (take) round.on_data_received(action->from);
  }
  return steps;
}

using ActionKind = Round::ActionKind;

TEST(Round, OneRankNeedsNoPeers) {
  Round round(Rank{0}, 1, Clock{5});
  EXPECT_TRUE(run(round).empty());
  round.end_step({.samples = 3});
  EXPECT_EQ(run(round), (std::vector{ActionKind::kSendGradients, ActionKind::kApply, ActionKind::kSendRefreshes,
                                     ActionKind::kComplete}));
  EXPECT_EQ(round.clock(), Clock{6});
  EXPECT_EQ(round.applied(), Clock{5});
  EXPECT_EQ(round.all().samples, 3U);
}

TEST(Round, AppliesAfterMessagesOfAllRanks) {
  Round round(Rank{0}, 3, Clock{0});
  round.end_step({.samples = 1});
  EXPECT_EQ(run(round), std::vector{ActionKind::kSendGradients});
  round.on_message(Rank{2}, header(MessageKind::kGradientPhase, 0, 4));
  EXPECT_EQ(run(round), std::vector{ActionKind::kReceiveGradients});
  EXPECT_EQ(round.pending_peers(), std::vector{Rank{1}});
  round.on_message(Rank{1}, header(MessageKind::kGradientPhase, 0, 2));
  EXPECT_EQ(run(round), (std::vector{ActionKind::kReceiveGradients, ActionKind::kApply, ActionKind::kSendRefreshes}));
  EXPECT_EQ(round.all().samples, 7U);
}

TEST(Round, WaitsForDataInFlight) {
  Round round(Rank{0}, 2, Clock{0});
  round.end_step({});
  round.on_message(Rank{1}, header(MessageKind::kGradientPhase, 0));
  EXPECT_EQ(round.next()->kind, ActionKind::kSendGradients);
  EXPECT_EQ(round.next()->kind, ActionKind::kReceiveGradients);
  EXPECT_FALSE(round.next().has_value());
  round.on_data_received(Rank{1});
  EXPECT_EQ(round.next()->kind, ActionKind::kApply);
}

TEST(Round, KeepsEarlyMessages) {
  Round round(Rank{0}, 2, Clock{0});
  round.on_message(Rank{1}, header(MessageKind::kGradientPhase, 0));  // while this rank still trains
  round.end_step({});
  round.on_message(Rank{1}, header(MessageKind::kRefreshPhase, 0));  // the other has already applied
  EXPECT_EQ(run(round).back(), ActionKind::kComplete);
  round.end_step({});
  EXPECT_EQ(run(round), std::vector{ActionKind::kSendGradients});
}

TEST(Round, AcceptsNextGradientsWhileWaitingForValues) {
  Round round(Rank{0}, 3, Clock{0});
  round.end_step({});
  for (auto const rank : {Rank{1}, Rank{2}}) round.on_message(rank, header(MessageKind::kGradientPhase, 0));
  run(round);
  round.on_message(Rank{1}, header(MessageKind::kRefreshPhase, 0));
  round.on_message(Rank{1},
                   header(MessageKind::kGradientPhase, 1, 9));  // rank 1 has all its values and has ended step 1
  run(round);
  EXPECT_EQ(round.phase(), Round::Phase::kRefreshPhase);
  round.on_message(Rank{2}, header(MessageKind::kRefreshPhase, 0));
  EXPECT_EQ(run(round).back(), ActionKind::kComplete);
  round.on_message(Rank{2}, header(MessageKind::kGradientPhase, 1));
  round.end_step({});
  run(round);
  EXPECT_EQ(round.all().samples, 10U);
}

TEST(Round, RejectsInvalidMessages) {
  auto const make = [] {
    Round round(Rank{0}, 2, Clock{3});
    round.end_step({});
    run(round);
    return round;
  };
  auto expect_rejected = [&](Rank from, Message const& message) {
    Round round = make();
    try {
      round.on_message(from, message);
      ADD_FAILURE() << "accepted";
    } catch (PeerError const& error) {
      EXPECT_EQ(error.peer(), from);
    }
  };
  expect_rejected(Rank{1}, header(MessageKind::kGradientPhase, 2));  // the past
  expect_rejected(Rank{1}, header(MessageKind::kGradientPhase, 4));  // before it can have ended step 3
  expect_rejected(Rank{1}, header(MessageKind::kRefreshPhase, 4));
  expect_rejected(Rank{0}, header(MessageKind::kGradientPhase, 3));  // from itself
  Round round = make();
  round.on_message(Rank{1}, header(MessageKind::kGradientPhase, 3));
  EXPECT_THROW(round.on_message(Rank{1}, header(MessageKind::kGradientPhase, 3)), PeerError);  // twice
}

TEST(Round, RejectsSecondMessageOfAPhaseThatWasGiven) {
  Round round(Rank{0}, 3, Clock{3});
  round.end_step({});
  round.on_message(Rank{1}, header(MessageKind::kGradientPhase, 3));
  EXPECT_EQ(round.next()->kind, ActionKind::kSendGradients);
  EXPECT_EQ(round.next()->kind, ActionKind::kReceiveGradients);
  EXPECT_THROW(round.on_message(Rank{1}, header(MessageKind::kGradientPhase, 3)), PeerError);
}

TEST(Round, OneRejectionRejectsStepForAllRanks) {
  Round round(Rank{0}, 3, Clock{0});
  round.end_step({.samples = 1, .signal = 1});
  round.on_message(Rank{1},
                   {.kind = MessageKind::kGradientPhase, .clock = Clock{0}, .signal = 4, .error = "not finite"});
  round.on_message(Rank{2}, header(MessageKind::kGradientPhase, 0));
  run(round);
  EXPECT_EQ(round.all().rejection, "not finite");
  EXPECT_EQ(round.all().signal, 5U);
}

TEST(Round, NextInIsFirstStepNotYetSent) {
  Round round(Rank{0}, 2, Clock{0});
  EXPECT_EQ(round.next_in(), Clock{0});
  round.end_step({});
  EXPECT_EQ(round.next_in(), Clock{0});
  run(round);  // sent
  EXPECT_EQ(round.next_in(), Clock{1});
}

}  // namespace
}  // namespace gpups::cache::round_test
