// SPDX-License-Identifier: Apache-2.0
// Which algorithm is reckoned to be fastest: by modelled time, and by what sums have taken; and what is tried.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "comm/collective/reckoning.hpp"
#include "tests/sum_shapes.hpp"

namespace gpups::comm {
namespace {

// Sums as the reckoning wants them, each of which takes what `seconds` says of its algorithm. Of the last ones, how
// many took each.
template <class Seconds>
std::map<Algorithm const*, int> sum(Reckoning& reckoning, SumShape const& shape, int sums, Seconds seconds,
                                    int last = 1) {
  std::map<Algorithm const*, int> taken;
  for (int i = 0; i < sums; ++i) {
    Algorithm const& algorithm = *reckoning.next(shape).algorithm;
    reckoning.learn(shape, algorithm, seconds(algorithm), nullptr);
    if (i >= sums - last) ++taken[&algorithm];
  }
  return taken;
}

TEST(LinkModel, TimeIsTheSumOfItsParts) {
  LinkModel const model{
      .round_s = 1, .byte_s = 10, .fresh_s = 100, .add_s = 1000, .entry_s = 10000, .element_s = 100000};
  EXPECT_EQ(seconds(model, {.rounds = 1, .bytes = 2, .fresh = 3, .added = 4, .entries = 5, .elements = 6}), 654321);
  Work work{.rounds = 1, .bytes = 2};
  work += {.rounds = 1, .added = 7};
  EXPECT_EQ(seconds(model, work), 7022);
}

TEST(Reckoning, TakesWhatIsModelledFastest) {
  // Of few messages, or of few bytes.
  EXPECT_STREQ(Reckoning(only(&LinkModel::byte_s)).choose(dense(1000)).about.name, "direct");
  auto const rounds = Reckoning(only(&LinkModel::round_s)).estimates(dense(1000, 2));
  EXPECT_STREQ(rounds.front().algorithm->about.name, "doubling");
}

TEST(Reckoning, GivesEachAlgorithmThatCanDoItOnce) {
  Reckoning const reckoning(only(&LinkModel::byte_s));
  for (SumShape const& shape : {dense(1 << 20), sparse(1 << 20, 1000)}) {
    auto const estimates = reckoning.estimates(shape);
    std::set<Algorithm const*> distinct;
    for (auto const& estimate : estimates) {
      distinct.insert(estimate.algorithm);
      EXPECT_TRUE(estimate.algorithm->has(shape.format));
      EXPECT_GT(estimate.modelled_s, 0);
    }
    EXPECT_EQ(distinct.size(), estimates.size());
    EXPECT_TRUE(std::is_sorted(estimates.begin(), estimates.end(),
                               [](auto const& a, auto const& b) { return a.expected_s < b.expected_s; }));
  }
}

TEST(Reckoning, CostsGrowWithWhatThereIsToDo) {
  for (Algorithm const& algorithm : algorithms()) {
    Work const small = algorithm.work(dense(1000), 1000), large = algorithm.work(dense(2000), 2000);
    EXPECT_LT(small.bytes, large.bytes) << algorithm.about.name;
    Work const few = algorithm.work(sparse(100000, 100), 400), many = algorithm.work(sparse(100000, 200), 800);
    EXPECT_LE(few.bytes, many.bytes) << algorithm.about.name;
    EXPECT_LT(few.entries, many.entries) << algorithm.about.name;
  }
}

TEST(Reckoning, WhatWasSlowIsNotTakenAgain) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = dense(1 << 20);
  auto const modelled = reckoning.estimates(shape);
  Algorithm const &best = *modelled[0].algorithm, &next = *modelled[1].algorithm;
  auto const seconds = [&](Algorithm const& a) { return &a == &best ? 10. : &a == &next ? 1. : 20.; };
  sum(reckoning, shape, 3, seconds);
  EXPECT_EQ(&reckoning.choose(shape), &best);  // nothing else was compared with it
  sum(reckoning, shape, 100, seconds);
  EXPECT_EQ(&reckoning.choose(shape), &next);
  EXPECT_EQ(&reckoning.choose(dense(1 << 10)), &best);  // nothing is known of other sizes
}

// Where little of an array is not zero, that is all that is sent.
TEST(Reckoning, TakesStreamsOfArraysThatAreMostlyZero) {
  Reckoning const reckoning(only(&LinkModel::byte_s));
  SumShape shape = dense(1 << 20, 2);
  EXPECT_FALSE(reckoning.choose(shape).about.sparse);
  for (std::uint64_t const given : {shape.elements / 2, shape.elements / 100}) {
    shape.given_most = given;
    EXPECT_TRUE(reckoning.choose(shape).about.sparse) << given;
  }
}

// The model errs by the same factor in sums that are alike.
TEST(Reckoning, WhatIsKnownOfOneKindTellsOfThoseNear) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = sparse(1 << 20, 10000), near = sparse(1 << 21, 40000), far = sparse(1 << 26, 10000);
  auto const modelled = reckoning.estimates(shape), at_first = reckoning.estimates(near);
  Algorithm const& best = *modelled[0].algorithm;
  EXPECT_EQ(at_first[0].algorithm, &best);
  std::map<Algorithm const*, double> takes;
  for (auto const& e : modelled) takes[e.algorithm] = (e.algorithm == &best ? 3 : 1) * e.modelled_s;
  sum(reckoning, shape, 200, [&](Algorithm const& a) { return takes[&a]; });
  auto const found = reckoning.estimates(near);
  EXPECT_EQ(found[0].algorithm, at_first[1].algorithm);
  EXPECT_EQ(found[0].measured_s, 0);
  EXPECT_FALSE(found[0].settled);
  auto const again = std::find_if(found.begin(), found.end(), [&](Estimate const& e) { return e.algorithm == &best; });
  EXPECT_NEAR(again->expected_s, 3 * again->modelled_s, again->modelled_s * 1e-6);
  EXPECT_EQ(&reckoning.choose(far), Reckoning(only(&LinkModel::byte_s)).estimates(far)[0].algorithm);
}

TEST(Reckoning, WhatWasDisturbedGetsAnotherChance) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = sparse(1 << 20, 10000);
  auto const modelled = reckoning.estimates(shape);
  Algorithm const& best = *modelled[1].algorithm;
  int disturbed = 0;
  auto const seconds = [&](Algorithm const& a) { return &a == &best ? (disturbed++ < 8 ? .002 : .0008) : .001; };
  sum(reckoning, shape, 100, seconds);
  EXPECT_NE(&reckoning.choose(shape), &best);
  sum(reckoning, shape, 2000, seconds);
  EXPECT_EQ(&reckoning.choose(shape), &best);
}

// The times of sums that overlap are not known.
TEST(Reckoning, ATryIsOfAFewSumsAndNotHeld) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = sparse(1 << 20, 10000);
  Estimate taken;
  for (int i = 0; i < 300 && !taken.is_try; ++i) {
    taken = reckoning.next(shape);
    EXPECT_EQ(taken.is_try, taken.algorithm != &reckoning.choose(shape));
    if (!taken.is_try) reckoning.learn(shape, *taken.algorithm, .005, nullptr);
  }
  ASSERT_TRUE(taken.is_try);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(reckoning.next(shape).algorithm, taken.algorithm);
  for (int i = 0; i < 20; ++i) {
    taken = reckoning.next(shape);
    EXPECT_EQ(taken.algorithm, &reckoning.choose(shape));
    EXPECT_EQ(taken.is_compared, i < 4) << i;  // it is told of as many sums after it, and while the last is
  }
}

// The first of several sums has to get its memory.
TEST(Reckoning, ATimeCountsWhereTheSumBeforeTookTheSame) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = dense(1 << 20);
  auto const modelled = reckoning.estimates(shape);
  Algorithm const &one = *modelled[0].algorithm, &other = *modelled[1].algorithm;
  for (int i = 0; i < 10; ++i) reckoning.learn(shape, i % 2 == 0 ? one : other, 1, nullptr);
  for (auto const& e : reckoning.estimates(shape)) EXPECT_EQ(e.measured_s, 0) << e.algorithm->about.name;
  reckoning.learn(shape, other, 2, nullptr);
  for (auto const& e : reckoning.estimates(shape)) EXPECT_EQ(e.measured_s, e.algorithm == &other ? 2 : 0);
}

// Each for seconds: a time by itself tells less of an algorithm than of when it was taken.
TEST(Reckoning, FindsTheFastestOnAMachineOfTwoSpeeds) {
  SumShape const shape = sparse(1 << 20, 10000);
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Reckoning reckoning(only(&LinkModel::byte_s));
    auto const modelled = reckoning.estimates(shape);
    Algorithm const& best = *modelled[1].algorithm;
    std::mt19937_64 random(seed);
    std::exponential_distribution<double> lasts(.5), late(20);
    double slower = 1, now_s = 0, until_s = 0;
    auto const seconds = [&](Algorithm const& algorithm) {
      if (now_s >= until_s) {
        slower = slower == 1 ? 1.4 : 1;
        until_s = now_s + lasts(random);
      }
      double const took = (&algorithm == &best ? .002 : .0023) * slower * (1 + late(random));
      now_s += took;
      return took;
    };
    EXPECT_GT(sum(reckoning, shape, 2000, seconds, 1000)[&best], 800) << "seed " << seed;
  }
}

// What sums of a second lose by tries is a small part of their time, from the first one on.
TEST(Reckoning, TriesCostASmallShareOfAllTime) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = sparse(1 << 20, 10000);
  Algorithm const& best = reckoning.choose(shape);
  double total = 0, lost = 0;
  int tries = 0;
  for (int i = 0; i < 1000; ++i) {
    auto const taken = reckoning.next(shape);
    double const seconds = taken.algorithm == &best ? 1 : 1.5;
    tries += taken.is_try ? 1 : 0;
    total += seconds;
    lost += seconds - 1;
    EXPECT_LE(lost, .05 + .05 * total + 3 * .5) << i;  // and one try, which is not known to be slow before
    reckoning.learn(shape, *taken.algorithm, seconds, nullptr);
  }
  EXPECT_EQ(&reckoning.choose(shape), &best);
  EXPECT_GT(tries, 0);
}

// Time of sums that were not told counts too, but not what disturbed the one that was.
TEST(Reckoning, OneSumMayStandForMany) {
  Estimate const fast{.algorithm = &algorithms()[0], .measured_s = 1, .settled = true, .expected_s = 1, .hoped_s = 1};
  Estimate const slow{.algorithm = &algorithms()[1], .expected_s = 2, .hoped_s = 0.5};
  auto const begins = [&](double seconds, std::uint64_t stands_for) {
    Tries tries;
    tries.learn(true, 1, seconds, stands_for);
    return tries.next({fast, slow}).is_compared;
  };
  EXPECT_FALSE(begins(1, 1));  // three sums of a try would cost more than a twentieth
  EXPECT_FALSE(begins(1, 32));
  EXPECT_TRUE(begins(1, 64));
  EXPECT_FALSE(begins(40, 2));  // of which one may have taken 10
  EXPECT_TRUE(begins(80, 2));
}

// A choice that holds for many sums is doubted after as many of them as one that is told for each.
TEST(Reckoning, SumsThatAreNotToldBringTriesNearer) {
  Estimate const fast{
      .algorithm = &algorithms()[0], .measured_s = .001, .runs = 9, .settled = true, .expected_s = .001};
  Estimate const slow{.algorithm = &algorithms()[1], .runs = 3, .settled = true, .expected_s = .0011};
  auto const told_before_a_try = [&](std::uint64_t stands_for) {
    Tries tries;
    for (int told = 0; told < 100; ++told) {
      if (tries.next({fast, slow}).is_compared) return told;
      tries.learn(true, .001, .001, stands_for);
    }
    return 100;
  };
  EXPECT_EQ(told_before_a_try(1), 8);
  EXPECT_EQ(told_before_a_try(4), 2);
  EXPECT_EQ(told_before_a_try(64), 1);
}

TEST(Reckoning, TriesBecomeRare) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = sparse(1 << 20, 10000);
  Algorithm const& best = *reckoning.estimates(shape)[1].algorithm;
  std::vector<int> tries(4, 0);  // in each 500 sums
  for (int i = 0; i < 2000; ++i) {
    auto const taken = reckoning.next(shape);
    tries[static_cast<std::size_t>(i / 500)] += taken.is_try ? 1 : 0;
    reckoning.learn(shape, *taken.algorithm, taken.algorithm == &best ? .001 : .0012, nullptr);
  }
  EXPECT_EQ(&reckoning.choose(shape), &best);
  EXPECT_GT(tries[0], tries[3]);
  EXPECT_GE(tries[3], 8 * 6);  // what has become fast is found out
  EXPECT_LE(tries[3], 8 * 8);
}

// Sums of a millisecond lose little by tries: all that may be fastest are tried at once.
TEST(Reckoning, ShortSumsFindTheFastestSoon) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = sparse(1 << 20, 10000);
  auto const modelled = reckoning.estimates(shape);
  Algorithm const& best = *modelled[2].algorithm;  // to the model's surprise
  int slower = 0;
  for (int i = 0; i < 200; ++i) {
    Algorithm const& taken = *reckoning.next(shape).algorithm;
    reckoning.learn(shape, taken, &taken == &best ? .001 : .0012, nullptr);
    slower += &taken == &best ? 0 : 1;
  }
  EXPECT_EQ(&reckoning.choose(shape), &best);
  EXPECT_TRUE(reckoning.estimates(shape)[0].settled);
  EXPECT_LT(slower, 100);
}

TEST(Reckoning, TheLastTimesCount) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = dense(1 << 20);
  auto const modelled = reckoning.estimates(shape);
  Algorithm const &best = *modelled[0].algorithm, &next = *modelled[1].algorithm;
  double best_s = .001;
  auto const seconds = [&](Algorithm const& a) { return &a == &best ? best_s : &a == &next ? .0015 : .004; };
  sum(reckoning, shape, 500, seconds);
  EXPECT_EQ(&reckoning.choose(shape), &best);
  best_s = .003;  // the link is not what it was
  sum(reckoning, shape, 1000, seconds);
  EXPECT_EQ(&reckoning.choose(shape), &next);
}

TEST(Reckoning, SaysWhy) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  std::uint64_t const entries = 3000;
  for (int i = 0; i < 2; ++i) reckoning.learn(sparse(100000, 1000), algorithms()[0], 0.5, &entries);
  auto const lines = reckoning.explain();
  ASSERT_EQ(lines.size(), 1U);
  for (char const* part :
       {"2 sums of 100000 floats", "1 % of them on a rank", "3 % in the sum", "as float", "direct", "(measured 500)"}) {
    EXPECT_NE(lines[0].find(part), std::string::npos) << part << " in " << lines[0];
  }
}

}  // namespace
}  // namespace gpups::comm
