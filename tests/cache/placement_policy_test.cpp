// SPDX-License-Identifier: Apache-2.0
// The policies that decide who owns a row, and the list of announced uses that they read.
#include "cache/placement/policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "cache/placement/key_uses.hpp"

namespace gpups::cache {
namespace {

constexpr RowBytes kSmallState{.read = 256, .update = 256, .move = 268};
constexpr RowBytes kLargeState{.read = 256, .update = 256, .move = 768};

// Returns the owner from step 5 on of one row that `owner` owned before.
Rank choose(PlacementPolicy policy, std::uint32_t owner, std::vector<RowUse> const& uses,
            RowBytes const& bytes = kSmallState, Key key = Key{1}) {
  Rank const before{owner};
  std::vector<std::uint32_t> const first{0, static_cast<std::uint32_t>(uses.size())};
  return choose_owners(policy, {.step = Clock{5},
                                .bytes = bytes,
                                .keys = {&key, 1},
                                .owners = {&before, 1},
                                .first_use = first,
                                .uses = uses})[0];
}

RowUse use(std::int64_t step, std::uint32_t rank) { return {Clock{step}, Rank{rank}}; }

TEST(PlacementPolicies, StaticKeepsTheOwner) {
  EXPECT_EQ(choose(PlacementPolicy::kStatic, 0, {use(5, 1), use(6, 1)}), Rank{0});
}

TEST(PlacementPolicies, AdaptiveMovesRowToItsOnlyUser) {
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, {use(5, 1)}), Rank{1});
}

TEST(PlacementPolicies, AdaptiveMovesRowWithMuchStateAtItsSecondUse) {
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, {use(5, 1)}, kLargeState), Rank{0});
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, {use(5, 1), use(8, 1)}, kLargeState), Rank{1});
}

TEST(PlacementPolicies, AdaptiveKeepsRowThatItsOwnerUsesAsMuch) {
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, {use(5, 0), use(5, 1)}), Rank{0});
}

TEST(PlacementPolicies, AdaptiveMovesRowToItsMostFrequentUser) {
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, {use(5, 1), use(5, 2), use(6, 2)}), Rank{2});
}

// A rank that uses the row later gets it later: a row moves to a rank that reads it anyway.
TEST(PlacementPolicies, RowMovesToUserOfTheStepOnly) {
  for (auto const policy : {PlacementPolicy::kAdaptive, PlacementPolicy::kRelocate, PlacementPolicy::kRandom}) {
    for (std::uint64_t key = 0; key < 50; ++key) {
      auto const owner = choose(policy, 0, {use(5, 1), use(6, 2), use(7, 2), use(8, 2)}, kSmallState, Key{key});
      EXPECT_NE(owner, Rank{2});
    }
  }
}

TEST(PlacementPolicies, RelocateKeepsRowThatItsOwnerUses) {
  EXPECT_EQ(choose(PlacementPolicy::kRelocate, 0, {use(5, 1), use(5, 0), use(6, 1)}), Rank{0});
  EXPECT_EQ(choose(PlacementPolicy::kRelocate, 0, {use(5, 1), use(5, 2), use(6, 2), use(6, 0)}, kLargeState), Rank{2});
}

TEST(PlacementPolicies, RandomReachesAllUsersAndDependsOnTheKeyOnly) {
  std::set<Rank> owners;
  for (std::uint64_t key = 0; key < 100; ++key) {
    std::vector<RowUse> uses{use(5, 3), use(5, 1), use(5, 2)};
    auto const owner = choose(PlacementPolicy::kRandom, 0, uses, kSmallState, Key{key});
    std::reverse(uses.begin(), uses.end());
    EXPECT_EQ(choose(PlacementPolicy::kRandom, 0, uses, kSmallState, Key{key}), owner);
    owners.insert(owner);
  }
  EXPECT_EQ(owners, (std::set{Rank{0}, Rank{1}, Rank{2}, Rank{3}}));
}

// Two ranks take turns: the row moves with each turn if a turn is longer than a move costs.
TEST(PlacementPolicies, AdaptiveLooksBeyondTheNextMove) {
  std::vector<RowUse> uses{use(5, 1)};
  for (std::int64_t step = 6; step < 12; ++step) uses.push_back(use(step, 2));
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, uses), Rank{1});
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, uses, kLargeState), Rank{0});
  uses.push_back(use(5, 2));
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, uses, kLargeState), Rank{2});
}

TEST(KeyUses, ReturnsEachKeyOfAStepOnceAndForgetsItsUse) {
  KeyUses uses;
  std::vector<Key> const both{Key{7}, Key{9}}, one{Key{7}};
  uses.add(View<Key const>(both), use(5, 0));
  uses.add(View<Key const>(one), use(6, 1));
  uses.add(View<Key const>(one), use(5, 1));
  EXPECT_TRUE(uses.take(Clock{4}).keys.empty());
  auto const first = uses.take(Clock{5});
  EXPECT_EQ(first.keys, both);
  EXPECT_EQ(first.first, (std::vector<std::uint32_t>{0, 3, 4}));
  EXPECT_EQ(first.uses.back().reader, Rank{0});
  auto const second = uses.take(Clock{6});
  EXPECT_EQ(second.keys, one);
  ASSERT_EQ(second.uses.size(), 1U);
  EXPECT_EQ(second.uses[0].step, Clock{6});
  EXPECT_EQ(second.uses[0].reader, Rank{1});
}

}  // namespace
}  // namespace gpups::cache
