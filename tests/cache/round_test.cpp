// SPDX-License-Identifier: Apache-2.0
// The round's control flow, without any data.
#include "cache/round.hpp"

#include <gtest/gtest.h>

#include "gpups/error.hpp"

namespace gpups::cache {
namespace {

Message header(MessageKind kind, std::int64_t clock, std::uint64_t samples = 1, std::string error = {}) {
  return {.kind = kind, .clock = Clock{clock}, .samples = samples, .error = std::move(error)};
}

// What the round wants next, as far as it goes, taking what it is told to take at once.
std::vector<Round::Step> run(Round& round) {
  std::vector<Round::Step> steps;
  while (auto const action = round.next()) {
    steps.push_back(action->step);
    bool const take = action->step == Round::Step::kTakeIn || action->step == Round::Step::kTakeOut;
    if (take) round.taken(action->from);
  }
  return steps;
}

using Step = Round::Step;

TEST(Round, OfOneRankNeedsNobody) {
  Round round(Rank{0}, 1, Clock{5});
  EXPECT_TRUE(run(round).empty());
  round.step_ended({.samples = 3});
  EXPECT_EQ(run(round), (std::vector{Step::kSendIn, Step::kApply, Step::kSendOut, Step::kComplete}));
  EXPECT_EQ(round.clock(), Clock{6});
  EXPECT_EQ(round.applied(), Clock{5});
  EXPECT_EQ(round.all().samples, 3U);
}

TEST(Round, AppliesOnlyWhenAllHaveSpoken) {
  Round round(Rank{0}, 3, Clock{0});
  round.step_ended({.samples = 1});
  EXPECT_EQ(run(round), std::vector{Step::kSendIn});
  round.received(Rank{2}, header(MessageKind::kIn, 0, 4));
  EXPECT_EQ(run(round), std::vector{Step::kTakeIn});
  EXPECT_EQ(round.awaited(), std::vector{Rank{1}});
  round.received(Rank{1}, header(MessageKind::kIn, 0, 2));
  EXPECT_EQ(run(round), (std::vector{Step::kTakeIn, Step::kApply, Step::kSendOut}));
  EXPECT_EQ(round.all().samples, 7U);
}

TEST(Round, WaitsForDataThatIsStillUnderWay) {
  Round round(Rank{0}, 2, Clock{0});
  round.step_ended({});
  round.received(Rank{1}, header(MessageKind::kIn, 0));
  EXPECT_EQ(round.next()->step, Step::kSendIn);
  EXPECT_EQ(round.next()->step, Step::kTakeIn);
  EXPECT_FALSE(round.next().has_value());
  round.taken(Rank{1});
  EXPECT_EQ(round.next()->step, Step::kApply);
}

TEST(Round, KeepsWhatComesEarly) {
  Round round(Rank{0}, 2, Clock{0});
  round.received(Rank{1}, header(MessageKind::kIn, 0));  // while this rank still trains
  round.step_ended({});
  round.received(Rank{1}, header(MessageKind::kOut, 0));  // the other has already applied
  EXPECT_EQ(run(round).back(), Step::kComplete);
  round.step_ended({});
  EXPECT_EQ(run(round), std::vector{Step::kSendIn});
}

TEST(Round, TakesTheNextStepsGradientsWhileValuesAreAwaited) {
  Round round(Rank{0}, 3, Clock{0});
  round.step_ended({});
  for (auto const rank : {Rank{1}, Rank{2}}) round.received(rank, header(MessageKind::kIn, 0));
  run(round);
  round.received(Rank{1}, header(MessageKind::kOut, 0));
  round.received(Rank{1}, header(MessageKind::kIn, 1, 9));  // rank 1 has all it needs and trains on
  run(round);
  EXPECT_EQ(round.phase(), Round::Phase::kOut);
  round.received(Rank{2}, header(MessageKind::kOut, 0));
  EXPECT_EQ(run(round).back(), Step::kComplete);
  round.received(Rank{2}, header(MessageKind::kIn, 1));
  round.step_ended({});
  run(round);
  EXPECT_EQ(round.all().samples, 10U);
}

TEST(Round, RefusesWhatCannotBeRight) {
  auto const make = [] {
    Round round(Rank{0}, 2, Clock{3});
    round.step_ended({});
    run(round);
    return round;
  };
  auto expect_refused = [&](Rank from, Message const& message) {
    Round round = make();
    try {
      round.received(from, message);
      ADD_FAILURE() << "accepted";
    } catch (PeerError const& error) {
      EXPECT_EQ(error.peer(), from);
    }
  };
  expect_refused(Rank{1}, header(MessageKind::kIn, 2));  // the past
  expect_refused(Rank{1}, header(MessageKind::kIn, 4));  // before it can have ended step 3
  expect_refused(Rank{1}, header(MessageKind::kOut, 4));
  expect_refused(Rank{0}, header(MessageKind::kIn, 3));  // from itself
  Round round = make();
  round.received(Rank{1}, header(MessageKind::kIn, 3));
  EXPECT_THROW(round.received(Rank{1}, header(MessageKind::kIn, 3)), PeerError);  // twice
}

TEST(Round, OneRefusalIsEverybodys) {
  Round round(Rank{0}, 3, Clock{0});
  round.step_ended({.samples = 1, .signal = 1});
  round.received(Rank{1}, {.kind = MessageKind::kIn, .clock = Clock{0}, .signal = 4, .error = "not finite"});
  round.received(Rank{2}, header(MessageKind::kIn, 0));
  run(round);
  EXPECT_EQ(round.all().refusal, "not finite");
  EXPECT_EQ(round.all().signal, 5U);
}

TEST(Round, SaysWhatTravelsWithWhichStep) {
  Round round(Rank{0}, 2, Clock{0});
  EXPECT_EQ(round.next_in(), Clock{0});
  round.step_ended({});
  EXPECT_EQ(round.next_in(), Clock{0});
  run(round);  // sent
  EXPECT_EQ(round.next_in(), Clock{1});
}

}  // namespace
}  // namespace gpups::cache
