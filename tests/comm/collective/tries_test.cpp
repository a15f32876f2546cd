// SPDX-License-Identifier: Apache-2.0
// When sums take what is not the usual algorithm.
#include "comm/collective/tries.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace gpups::comm {
namespace {

// But not one that saves time.
TEST(Tries, OneThatTakesMoreThanItMayIsOver) {
  Estimate const usual{.way = &ways()[0], .measured_s = 1, .settled = true, .expected_s = 1};
  Estimate const other{.way = &ways()[1], .expected_s = .5, .hoped_s = .4};
  auto const tried = [&](double seconds) {
    Tries tries;
    tries.learn({ways().data() + 2, 2}, usual);  // another one has taken a second more
    int sums = 0;
    for (int i = 0; i < 9; ++i) {
      bool const is_try = tries.next({usual, other}).way == other.way;
      sums += is_try ? 1 : 0;
      tries.learn({is_try ? other.way : usual.way, is_try ? seconds : 1}, usual);
    }
    return sums;
  };
  EXPECT_EQ(tried(.5), 3);
  EXPECT_EQ(tried(9), 1);
}

// Time of sums that were not told counts too, but not what disturbed the one that was.
TEST(Tries, OneSumMayStandForMany) {
  Estimate const fast{.way = &ways()[0], .measured_s = 1, .settled = true, .expected_s = 1, .hoped_s = 1};
  Estimate const slow{.way = &ways()[1], .expected_s = 2, .hoped_s = 0.5};
  auto const begins = [&](double seconds, std::uint64_t stands_for) {
    Tries tries;
    tries.learn({fast.way, seconds, stands_for}, fast);
    return tries.next({fast, slow}).is_compared;
  };
  EXPECT_FALSE(begins(1, 1));  // three sums of a try would cost more than a twentieth
  EXPECT_FALSE(begins(1, 32));
  EXPECT_TRUE(begins(1, 64));
  EXPECT_FALSE(begins(40, 2));  // of which one may have taken 10
  EXPECT_TRUE(begins(80, 2));
}

// A choice that holds for many sums is doubted after as many of them as one that is told for each.
TEST(Tries, SumsThatAreNotToldBringTriesNearer) {
  Estimate const fast{.way = &ways()[0], .measured_s = .001, .settled = true, .expected_s = .001};
  Estimate const slow{.way = &ways()[1], .idle = 3, .settled = true, .expected_s = .0011};
  auto const told_before_a_try = [&](std::uint64_t stands_for) {
    Tries tries;
    for (int told = 0; told < 100; ++told) {
      if (tries.next({fast, slow}).is_compared) return told;
      tries.learn({fast.way, .001, stands_for}, fast);
    }
    return 100;
  };
  EXPECT_EQ(told_before_a_try(1), 8);
  EXPECT_EQ(told_before_a_try(4), 2);
  EXPECT_EQ(told_before_a_try(64), 1);
}

}  // namespace
}  // namespace gpups::comm
