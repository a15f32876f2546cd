// SPDX-License-Identifier: Apache-2.0
// Which algorithm is reckoned to be fastest: by modelled time, and by what sums have taken; and what is tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "comm/collective/reckoning.hpp"
#include "tests/comm/collective/reckoned_sums.hpp"
#include "tests/comm/collective/sum_shapes.hpp"

namespace gpups::comm {
namespace {

TEST(LinkModel, TimeIsTheSumOfItsParts) {
  LinkModel const model{.round_s = 1,
                        .byte_s = 10,
                        .fresh_s = 100,
                        .add_s = 1000,
                        .entry_s = 1e4,
                        .element_s = 1e5,
                        .half_s = 1e6,
                        .code_s = 1e7};
  EXPECT_EQ(
      seconds(model,
              {.rounds = 1, .bytes = 2, .fresh = 3, .added = 4, .entries = 5, .elements = 6, .halves = 7, .codes = 8}),
      87654321);
  Work work{.rounds = 1, .bytes = 2};
  work += {.rounds = 1, .added = 7, .halves = 2, .codes = 1};
  EXPECT_EQ(seconds(model, work), 12007022);
}

TEST(Reckoning, TakesWhatIsModelledFastest) {
  // Of few messages, or of few bytes.
  EXPECT_STREQ(Reckoning(only(&LinkModel::byte_s)).choose(dense(1000)).algorithm->about.name, "direct");
  auto const rounds = Reckoning(only(&LinkModel::round_s)).estimates(dense(1000, 2));
  EXPECT_STREQ(rounds.front().way->algorithm->about.name, "doubling");
}

TEST(Reckoning, GivesEachWayThatCanDoItOnce) {
  Reckoning const reckoning(only(&LinkModel::byte_s));
  for (SumShape const& shape : {dense(1 << 20), sparse(1 << 20, 1000)}) {
    auto const estimates = reckoning.estimates(shape);
    std::set<Way const*> distinct;
    for (auto const& estimate : estimates) {
      distinct.insert(estimate.way);
      EXPECT_TRUE(estimate.way->serves(shape));
      EXPECT_GT(estimate.modelled_s, 0);
    }
    EXPECT_EQ(distinct.size(), estimates.size());
    EXPECT_TRUE(std::is_sorted(estimates.begin(), estimates.end(),
                               [](auto const& a, auto const& b) { return a.expected_s < b.expected_s; }));
  }
}

TEST(Reckoning, CostsGrowWithWhatThereIsToDo) {
  for (Way const& way : ways()) {
    Work const small = way.work(dense(1000), 1000), large = way.work(dense(2000), 2000);
    EXPECT_LT(small.bytes, large.bytes) << name_of(way);
    EXPECT_LT(small.halves + small.codes, large.halves + large.codes + (way.format == NumberFormat::kFloat ? 1 : 0))
        << name_of(way);
    Work const few = way.work(sparse(100000, 100), 400), many = way.work(sparse(100000, 200), 800);
    EXPECT_LE(few.bytes, many.bytes) << name_of(way);
    EXPECT_LT(few.entries, many.entries) << name_of(way);
  }
}

TEST(Reckoning, WhatWasSlowIsNotTakenAgain) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = dense(1 << 20);
  Sums sums(reckoning, shape);
  auto const modelled = reckoning.estimates(shape);
  Way const &best = *modelled[0].way, &next = *modelled[1].way;
  auto const seconds = [&](Way const& a) { return &a == &best ? 10. : &a == &next ? 1. : 20.; };
  sums.take(3, seconds);
  EXPECT_EQ(&reckoning.choose(shape), &best);  // nothing else was compared with it
  sums.take(100, seconds);
  EXPECT_EQ(&reckoning.choose(shape), &next);
  EXPECT_EQ(&reckoning.choose(dense(1 << 10)), &best);  // nothing is known of other sizes
}

// Where little of an array is not zero, that is all that is sent.
TEST(Reckoning, TakesStreamsOfArraysThatAreMostlyZero) {
  Reckoning const reckoning(only(&LinkModel::byte_s));
  SumShape shape = dense(1 << 20, 2);
  EXPECT_FALSE(reckoning.choose(shape).algorithm->about.sparse);
  for (std::uint64_t const given : {shape.elements / 2, shape.elements / 100}) {
    shape.given_most = given;
    EXPECT_TRUE(reckoning.choose(shape).algorithm->about.sparse) << given;
  }
}

// The model errs by the same factor in sums that are alike.
TEST(Reckoning, WhatIsKnownOfOneKindTellsOfThoseNear) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = sparse(1 << 20, 10000), near = sparse(1 << 21, 40000), far = sparse(1 << 26, 10000);
  auto const modelled = reckoning.estimates(shape), at_first = reckoning.estimates(near);
  Way const& best = *modelled[0].way;
  EXPECT_EQ(at_first[0].way, &best);
  std::map<Way const*, double> takes;
  for (auto const& e : modelled) takes[e.way] = (e.way == &best ? 3 : 1) * e.modelled_s;
  Sums(reckoning, shape).take(200, [&](Way const& a) { return takes[&a]; });
  auto const found = reckoning.estimates(near);
  EXPECT_EQ(found[0].way, at_first[1].way);
  EXPECT_EQ(found[0].measured_s, 0);
  EXPECT_FALSE(found[0].settled);
  auto const again = std::find_if(found.begin(), found.end(), [&](Estimate const& e) { return e.way == &best; });
  EXPECT_NEAR(again->expected_s, 3 * again->modelled_s, again->modelled_s * 1e-6);
  EXPECT_EQ(&reckoning.choose(far), Reckoning(only(&LinkModel::byte_s)).estimates(far)[0].way);
}

// However much.
TEST(Reckoning, WhatWasDisturbedGetsAnotherChance) {
  for (double const disturbed_s : {.002, .02, .2}) {
    Reckoning reckoning(only(&LinkModel::byte_s));
    SumShape const shape = sparse(1 << 20, 10000);
    Sums sums(reckoning, shape);
    Way const& best = *reckoning.estimates(shape)[1].way;
    int tries = 0;
    Way const* last = nullptr;
    auto const seconds = [&](Way const& a) {
      if (std::exchange(last, &a) != &a && &a == &best) ++tries;
      return &a != &best ? .001 : tries == 1 ? disturbed_s : .0008;
    };
    sums.take(100, seconds);
    EXPECT_NE(&reckoning.choose(shape), &best);
    sums.take(20000, seconds);
    EXPECT_EQ(&reckoning.choose(shape), &best) << disturbed_s;
  }
}

// The times of sums that overlap are not known.
TEST(Reckoning, ATryIsOfAFewSumsAndNotHeld) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = sparse(1 << 20, 10000);
  Sums sums(reckoning, shape);
  Way const* taken = nullptr;
  for (int i = 0; i < 300; ++i) {
    taken = reckoning.next(shape).way;
    if (taken != &reckoning.choose(shape)) break;
    sums.learn(*taken, .005);
  }
  ASSERT_NE(taken, &reckoning.choose(shape));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(reckoning.next(shape).way, taken);
  for (int i = 0; i < 20; ++i) {
    Estimate const after = reckoning.next(shape);
    EXPECT_EQ(after.way, &reckoning.choose(shape));
    EXPECT_EQ(after.is_compared, i < 5) << i;  // as many sums after it, and while the last are told of
  }
}

// The first of several sums has to get its memory.
TEST(Reckoning, ATimeCountsWhereTheSumBeforeTookTheSame) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = dense(1 << 20);
  Sums sums(reckoning, shape);
  auto const modelled = reckoning.estimates(shape);
  Way const &one = *modelled[0].way, &other = *modelled[1].way;
  auto const expect_measured = [&](double seconds) {
    for (auto const& e : reckoning.estimates(shape)) EXPECT_EQ(e.measured_s, e.way == &one ? seconds : 0);
  };
  for (int i = 0; i < 10; ++i) sums.learn(i % 2 == 0 ? other : one, 1);
  expect_measured(0);
  sums.skip(10);
  sums.learn(one, 1);
  expect_measured(0);
  sums.learn(one, 2);
  expect_measured(2);
}

// A choice is told for the next sum of the length, whatever that has.
TEST(Reckoning, LearnsOfSumsThatTakeAnothersChoice) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = dense(1 << 20);
  Sums sums(reckoning, shape);
  auto const modelled = reckoning.estimates(shape);
  Way const &one = *modelled[1].way, &other = *modelled[2].way;
  auto const some = [&](Way const& way, double seconds) {
    for (int i = 0; i < 3; ++i) sums.learn(way, seconds);
  };
  some(one, 2);
  some(other, 3);
  some(one, 2);
  EXPECT_EQ(&reckoning.choose(shape), &one);
  EXPECT_EQ(reckoning.estimates(shape)[1].way, &other);
  EXPECT_EQ(reckoning.estimates(shape)[1].measured_s, 3);
}

// Wherever it lies.
TEST(Reckoning, ADensityThatDiffersALittleIsOne) {
  for (double const density : {.1, .105, .11, .115, .12, .125, .13, .135, .14}) {
    Reckoning reckoning(only(&LinkModel::byte_s));
    std::uint64_t number = 0;
    for (double const differs : {1., 1.04, .97, .96, 1.}) {
      SumShape const shape = sparse(1 << 20, static_cast<std::uint64_t>(density * differs * (1 << 20)));
      reckoning.learn({.number = ++number, .shape = shape, .way = &reckoning.choose(shape), .seconds = 1});
    }
    EXPECT_EQ(reckoning.explain().size(), 1U) << density;
    SumShape const other = sparse(1 << 20, static_cast<std::uint64_t>(density * 1.5 * (1 << 20)));
    reckoning.learn({.number = ++number, .shape = other, .way = &reckoning.choose(other), .seconds = 1});
    EXPECT_EQ(reckoning.explain().size(), 2U) << density;
  }
}

TEST(Reckoning, SaysWhy) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = sparse(100000, 1000);
  Way const& usual = reckoning.choose(shape);
  Sums sums(reckoning, shape);
  sums.entries = 3000;
  for (int i = 0; i < 2; ++i) sums.learn(usual, 0.5);
  auto const lines = reckoning.explain();
  ASSERT_EQ(lines.size(), 1U);
  std::string const name = usual.algorithm->about.name;
  for (std::string const& part :
       {std::string("2 sums of sparse vectors of 100000 floats"), std::string("1 % of them on a rank"),
        std::string("3 % in the sum"), "as float, usually by " + name + ": " + name + " ",
        std::string("(measured 500), ")}) {
    EXPECT_NE(lines[0].find(part), std::string::npos) << part << " in " << lines[0];
  }
}

}  // namespace
}  // namespace gpups::comm
