// SPDX-License-Identifier: Apache-2.0
// How long one way of summing takes for what another takes.
#include "comm/collective/comparison.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "comm/collective/median.hpp"
#include "comm/collective/ways.hpp"

namespace gpups::comm {
namespace {

// Sums on end, each of the algorithm that its letter says. A capital's time does not count.
class Sums {
 public:
  std::optional<Comparison::Result> take(std::string const& letters, double seconds, bool right_after = true) {
    std::optional<Comparison::Result> last;
    for (char const letter : letters) {
      last = comparison_.learn(
          {.way = way(letter), .seconds = seconds, .counts = letter >= 'a', .right_after = right_after});
    }
    return last;
  }
  static Way const* way(char letter) { return &ways()[static_cast<std::size_t>(letter - (letter >= 'a' ? 'a' : 'A'))]; }

 private:
  Comparison comparison_;
};

TEST(Median, IsBetweenTheTwoInTheMiddle) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({9, 1, 2}), 2);
  EXPECT_EQ(median({9, 1, 2, 4}), 3);
}

TEST(Comparison, IsOverOnceAsManySumsCameAfterItAsItHad) {
  Sums sums;
  EXPECT_FALSE(sums.take("aaa", 1));
  EXPECT_FALSE(sums.take("Bbb", 2));
  EXPECT_FALSE(sums.take("Aa", 1));
  auto const result = sums.take("a", 1);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->one, Sums::way('b'));
  EXPECT_EQ(result->other, Sums::way('a'));
  EXPECT_EQ(result->ratio, 2);
  EXPECT_FALSE(sums.take("aaa", 1));  // it is told once
}

// Of the sums before, those just before count.
TEST(Comparison, WhatSlowsAllForAWhileDoesNotCount) {
  Sums sums;
  sums.take("aaaaa", 1);
  sums.take("aa", 10);
  sums.take("Bbb", 20);
  auto const result = sums.take("Aaa", 10);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->ratio, 2);
  sums.take("Ccc", 2);
  auto const grows = sums.take("Aaa", 30);
  ASSERT_TRUE(grows);
  EXPECT_EQ(grows->ratio, .1);  // of 10 before, and of 30 after
}

TEST(Comparison, ATimeThatDoesNotCountChangesNothing) {
  Sums sums;
  sums.take("aa", 1);
  sums.take("B", 100);
  sums.take("b", 3);
  sums.take("A", 100);
  auto const result = sums.take("a", 1);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->ratio, 3);
}

TEST(Comparison, NeedsTheSameBeforeAndAfter) {
  Sums sums;
  sums.take("aa", 1);
  sums.take("Bb", 1);
  EXPECT_FALSE(sums.take("Ccc", 1));
  auto const result = sums.take("Bbb", 1);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->one, Sums::way('c'));
}

TEST(Comparison, SumsThatWereLongBeforeDoNotCount) {
  Sums sums;
  sums.take("aaa", 1);
  sums.take("Bb", 1);
  EXPECT_FALSE(sums.take("a", 1, false));
  EXPECT_FALSE(sums.take("aaa", 1));
  sums.take("Bb", 2);
  EXPECT_TRUE(sums.take("Aa", 1));
}

TEST(Comparison, WithoutACountedSumThereIsNone) {
  Sums sums;
  sums.take("aaa", 1);
  sums.take("B", 1);
  EXPECT_FALSE(sums.take("Aaaaa", 1));
}

}  // namespace
}  // namespace gpups::comm
