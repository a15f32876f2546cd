// SPDX-License-Identifier: Apache-2.0
// The round's control flow, without any data.
#include "cache/protocol/round/round.hpp"

#include <gtest/gtest.h>

#include "gpups/error.hpp"

namespace gpups::cache::round_test {
namespace {

using SendGradients = Round::SendGradients;
using ReceiveGradients = Round::ReceiveGradients;
using Apply = Round::Apply;
using SendRefreshes = Round::SendRefreshes;
using ReceiveRefreshes = Round::ReceiveRefreshes;
using Complete = Round::Complete;

GradientPhase gradients(std::int64_t clock, std::uint64_t samples = 1) {
  return {.clock = Clock{clock}, .report = {.samples = samples}};
}
RefreshPhase values(std::int64_t clock) { return {.clock = Clock{clock}}; }

// The kinds of some actions.
using Actions = std::vector<std::size_t>;
template <class... Action>
Actions actions() {
  return {Round::Action(Action{}).index()...};
}

// Returns all actions that the round can take now. Data that it receives arrive at once.
Actions run(Round& round) {
  Actions steps;
  while (auto const action = round.next()) {
    steps.push_back(action->index());
    if (auto const* const receive = std::get_if<ReceiveGradients>(&*action)) round.on_data_received(receive->from);
    if (auto const* const receive = std::get_if<ReceiveRefreshes>(&*action)) round.on_data_received(receive->from);
  }
  return steps;
}

TEST(Round, OneRankNeedsNoPeers) {
  Round round(Rank{0}, 1, Clock{5});
  EXPECT_TRUE(run(round).empty());
  round.end_step({.samples = 3});
  EXPECT_EQ(run(round), (actions<SendGradients, Apply, SendRefreshes, Complete>()));
  EXPECT_EQ(round.clock(), Clock{6});
  EXPECT_EQ(round.applied(), Clock{5});
  EXPECT_EQ(round.all().samples, 3U);
}

TEST(Round, AppliesAfterMessagesOfAllRanks) {
  Round round(Rank{0}, 3, Clock{0});
  round.end_step({.samples = 1});
  EXPECT_EQ(run(round), actions<SendGradients>());
  round.on_message(Rank{2}, gradients(0, 4));
  EXPECT_EQ(run(round), actions<ReceiveGradients>());
  EXPECT_EQ(round.pending_peers(), std::vector{Rank{1}});
  round.on_message(Rank{1}, gradients(0, 2));
  EXPECT_EQ(run(round), (actions<ReceiveGradients, Apply, SendRefreshes>()));
  EXPECT_EQ(round.all().samples, 7U);
}

TEST(Round, AnnouncesBeforeTheFirstStepOfARestoredRun) {
  Round round(Rank{0}, 2, Clock{5});
  round.announce_first();
  EXPECT_EQ(round.clock(), Clock{5});  // between steps
  EXPECT_EQ(round.next_in(), Clock{4});
  EXPECT_EQ(round.complete_before(), Clock{5});
  EXPECT_THROW(round.on_message(Rank{1}, gradients(5)), PeerError);
  round.on_message(Rank{1}, gradients(4));  // the other has begun
  round.begin_announcing();
  EXPECT_EQ(run(round), (actions<SendGradients, ReceiveGradients, Apply, SendRefreshes>()));
  EXPECT_FALSE(round.is_of_step());
  EXPECT_EQ(round.clock(), Clock{4});
  EXPECT_EQ(round.complete_before(), Clock{5});
  round.on_message(Rank{1}, values(4));
  EXPECT_EQ(run(round), (actions<ReceiveRefreshes, Complete>()));
  EXPECT_EQ(round.clock(), Clock{5});
  EXPECT_EQ(round.applied(), Clock{4});
  round.end_step({});
  EXPECT_TRUE(round.is_of_step());
  EXPECT_FALSE(round.announces_next());
  round.on_message(Rank{1}, gradients(5));
  round.on_message(Rank{1}, values(5));
  run(round);
  EXPECT_EQ(round.clock(), Clock{6});
}

TEST(Round, WaitsForDataInFlight) {
  Round round(Rank{0}, 2, Clock{0});
  round.end_step({});
  round.on_message(Rank{1}, gradients(0));
  EXPECT_TRUE(std::holds_alternative<SendGradients>(*round.next()));
  EXPECT_TRUE(std::holds_alternative<ReceiveGradients>(*round.next()));
  EXPECT_FALSE(round.next().has_value());
  round.on_data_received(Rank{1});
  EXPECT_TRUE(std::holds_alternative<Apply>(*round.next()));
}

TEST(Round, KeepsEarlyMessages) {
  Round round(Rank{0}, 2, Clock{0});
  round.on_message(Rank{1}, gradients(0));  // while this rank still trains
  round.end_step({});
  round.on_message(Rank{1}, values(0));  // the other has already applied
  EXPECT_EQ(run(round).back(), actions<Complete>()[0]);
  round.end_step({});
  EXPECT_EQ(run(round), actions<SendGradients>());
}

TEST(Round, AcceptsNextGradientsWhileWaitingForValues) {
  Round round(Rank{0}, 3, Clock{0});
  round.end_step({});
  for (auto const rank : {Rank{1}, Rank{2}}) round.on_message(rank, gradients(0));
  run(round);
  round.on_message(Rank{1}, values(0));
  round.on_message(Rank{1}, gradients(1, 9));  // rank 1 has all its values and has ended step 1
  run(round);
  EXPECT_EQ(round.phase(), Round::Phase::kRefreshPhase);
  round.on_message(Rank{2}, values(0));
  EXPECT_EQ(run(round).back(), actions<Complete>()[0]);
  round.on_message(Rank{2}, gradients(1));
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
  auto expect_rejected = [&](Rank from, auto const& message) {
    Round round = make();
    try {
      round.on_message(from, message);
      ADD_FAILURE() << "accepted";
    } catch (PeerError const& error) {
      EXPECT_EQ(error.peer(), from);
    }
  };
  expect_rejected(Rank{1}, gradients(2));  // the past
  expect_rejected(Rank{1}, gradients(4));  // before it can have ended step 3
  expect_rejected(Rank{1}, values(4));
  expect_rejected(Rank{0}, gradients(3));  // from itself
  Round round = make();
  round.on_message(Rank{1}, gradients(3));
  EXPECT_THROW(round.on_message(Rank{1}, gradients(3)), PeerError);  // twice
}

TEST(Round, RejectsSecondMessageOfAPhaseThatWasGiven) {
  Round round(Rank{0}, 3, Clock{3});
  round.end_step({});
  round.on_message(Rank{1}, gradients(3));
  EXPECT_TRUE(std::holds_alternative<SendGradients>(*round.next()));
  EXPECT_TRUE(std::holds_alternative<ReceiveGradients>(*round.next()));
  EXPECT_THROW(round.on_message(Rank{1}, gradients(3)), PeerError);
}

TEST(Round, OneRejectionRejectsStepForAllRanks) {
  Round round(Rank{0}, 3, Clock{0});
  round.end_step({.samples = 1, .signal = 1});
  round.on_message(Rank{1}, GradientPhase{.clock = Clock{0}, .report = {.signal = 4, .rejection = "not finite"}});
  round.on_message(Rank{2}, gradients(0));
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
