// SPDX-License-Identifier: Apache-2.0
// What a Reckoning finds out as sums go on, and what that costs.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>

#include "comm/collective/reckoning.hpp"
#include "tests/comm/collective/reckoned_sums.hpp"
#include "tests/comm/collective/sum_shapes.hpp"

namespace gpups::comm {
namespace {

// Each for a while: a time by itself tells less of an algorithm than of when it was taken.
TEST(Reckoning, FindsTheFastestOnAMachineOfTwoSpeeds) {
  SumShape const shape = sparse(1 << 20, 10000);
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Reckoning reckoning(only(&LinkModel::byte_s));
    Sums sums(reckoning, shape, seed % 3);
    Way const& best = *reckoning.estimates(shape)[1].way;
    std::mt19937_64 random(seed);
    std::exponential_distribution<double> lasts(5), late(20);
    double slower = 1, now_s = 0, until_s = 0;
    auto const seconds = [&](Way const& way) {
      if (now_s >= until_s) {
        slower = slower == 1 ? 1.4 : 1;
        until_s = now_s + lasts(random);
      }
      double const took = (&way == &best ? .002 : .0023) * slower * (1 + late(random));
      now_s += took;
      return took;
    };
    EXPECT_GT(sums.take(2000, seconds, 1000)[&best], 800) << "seed " << seed;
  }
}

// What sums of a second lose by tries is a small part of their time, from the first one on.
TEST(Reckoning, TriesCostASmallShareOfAllTime) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = sparse(1 << 20, 10000);
  Sums sums(reckoning, shape);
  Way const& best = reckoning.choose(shape);
  double total = 0, lost = 0;
  int tries = 0;
  for (int i = 0; i < 1000; ++i) {
    Way const& taken = *reckoning.next(shape).way;
    double const seconds = &taken == &best ? 1 : 1.5;
    tries += &taken == &best ? 0 : 1;
    total += seconds;
    lost += seconds - 1;
    EXPECT_LE(lost, .05 + .05 * total + 3 * .5) << i;  // and one try, which is not known to be slow before
    sums.learn(taken, seconds);
  }
  EXPECT_EQ(&reckoning.choose(shape), &best);
  EXPECT_GT(tries, 0);
}

TEST(Reckoning, TriesBecomeRare) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = sparse(1 << 20, 10000);
  Sums sums(reckoning, shape);
  Way const& best = *reckoning.estimates(shape)[1].way;
  auto const seconds = [&](Way const& a) { return &a == &best ? .001 : .0012; };
  auto const tries = [&] { return 500 - sums.take(500, seconds, 500)[&best]; };
  int const at_first = tries();
  sums.take(1000, seconds);
  int const later = tries();
  EXPECT_EQ(&reckoning.choose(shape), &best);
  EXPECT_GT(at_first, later);
  EXPECT_GE(later, 8 * 6);  // what has become fast is found out
  EXPECT_LE(later, 8 * 8);
}

// Sums of a millisecond lose little by tries: all that may be fastest are tried at once.
TEST(Reckoning, ShortSumsFindTheFastestSoon) {
  for (std::size_t const late : {0, 1, 2}) {
    Reckoning reckoning(only(&LinkModel::byte_s));
    SumShape const shape = sparse(1 << 20, 10000);
    Sums sums(reckoning, shape, late);
    Way const& best = *reckoning.estimates(shape)[2].way;  // to the model's surprise
    auto const seconds = [&](Way const& a) { return &a == &best ? .001 : .0012; };
    EXPECT_GT(sums.take(250, seconds, 250)[&best], 125) << late;
    EXPECT_EQ(&reckoning.choose(shape), &best);
    EXPECT_TRUE(reckoning.estimates(shape)[0].settled);
  }
}

// As it has never been, and back.
TEST(Reckoning, ALinkMayBecomeAnother) {
  for (double const then_s : {.003, .1}) {
    Reckoning reckoning(only(&LinkModel::byte_s));
    SumShape const shape = dense(1 << 20);
    Sums sums(reckoning, shape);
    auto const modelled = reckoning.estimates(shape);
    Way const &best = *modelled[0].way, &next = *modelled[1].way;
    double best_s = .001;
    auto const seconds = [&](Way const& a) { return &a == &best ? best_s : &a == &next ? .0015 : .004; };
    sums.take(5000, seconds);
    EXPECT_EQ(&reckoning.choose(shape), &best);
    best_s = then_s;
    sums.take(1000, seconds);
    EXPECT_EQ(&reckoning.choose(shape), &next) << then_s;
    if (then_s > .003) continue;  // what is far off is seldom tried
    best_s = .001;
    sums.take(20000, seconds);
    EXPECT_EQ(&reckoning.choose(shape), &best) << then_s;
  }
}

// It would take long, or more memory than there is.
TEST(Reckoning, WhatTheModelSaysIsFarOffIsNotTried) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = sparse(1 << 24, 100);
  double const usual_s = reckoning.estimates(shape)[0].modelled_s;
  std::set<Way const*> far;
  for (auto const& e : reckoning.estimates(shape)) {
    if (e.modelled_s > 10 * usual_s) far.insert(e.way);
  }
  EXPECT_FALSE(far.empty());
  auto const taken = Sums(reckoning, shape)
                         .take(
                             5000, [](Way const&) { return .001; }, 5000);
  for (auto const* way : far) EXPECT_FALSE(taken.contains(way)) << name_of(*way);
}

// To the model's surprise.
TEST(Reckoning, WhatTakesAThousandTimesAsLongCostsLittle) {
  Reckoning reckoning(only(&LinkModel::byte_s));
  SumShape const shape = sparse(1 << 20, 10000);
  Way const& slow = *reckoning.estimates(shape)[1].way;
  auto const seconds = [&](Way const& a) { return &a == &slow ? 1. : .001; };
  auto const taken = Sums(reckoning, shape).take(20000, seconds, 20000);
  EXPECT_LE(taken.at(&slow), 8);
}

// Others are between them whose times are not known, or that have another density.
TEST(Reckoning, LearnsOfSumsThatAreNotQuiteOnEnd) {
  SumShape const shapes[] = {sparse(1 << 20, 10000), sparse(1 << 20, 40000)};
  auto const seconds = [](Way const* a, Way const* best) { return a == best ? .001 : .0012; };
  Reckoning overlapping(only(&LinkModel::byte_s)), alternating(only(&LinkModel::byte_s));
  Way const* const best = overlapping.estimates(shapes[0])[1].way;
  Way const* next = best;
  for (std::uint64_t number = 0; number < 1000; ++number) {
    Way const* const taken = overlapping.next(shapes[0]).way;
    overlapping.learn({.number = 2 * number, .shape = shapes[0], .way = taken, .seconds = seconds(taken, best)});
    SumShape const& shape = shapes[number % 2];
    alternating.learn({.number = number, .shape = shape, .way = next, .seconds = seconds(next, best)});
    next = alternating.next(shape).way;
  }
  EXPECT_EQ(&overlapping.choose(shapes[0]), best);
  for (SumShape const& shape : shapes) EXPECT_EQ(&alternating.choose(shape), best);
}

}  // namespace
}  // namespace gpups::comm
