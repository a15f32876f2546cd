// SPDX-License-Identifier: Apache-2.0
// The policies that decide who owns a row, and the list of announced uses that they read.
#include "cache/placement/policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "cache/placement/key_uses.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::cache::placement_policy_test {
namespace {

constexpr RowBytes kSmallState{.read = 256, .update = 256, .move = 268};
constexpr RowBytes kLargeState{.read = 256, .update = 256, .move = 768};

struct RowUse {
  std::int64_t step;
  std::uint32_t rank;
};

// Returns the owner from step 5 on of one row that `owner` owned before.
Rank choose(PlacementPolicy policy, std::uint32_t owner, std::vector<RowUse> const& uses,
            RowBytes const& bytes = kSmallState, Key key = Key{1}) {
  Rank const before{owner};
  std::vector<RowUser> users;
  for (auto const& [step, rank] : uses) {
    auto user = std::find_if(users.begin(), users.end(), [&](auto const& one) { return one.rank == Rank{rank}; });
    if (user == users.end()) user = users.insert(user, {Rank{rank}, 0});
    user->steps = static_cast<std::uint16_t>(user->steps | 1 << (step - 5));
  }
  std::vector<std::uint32_t> const first{0, static_cast<std::uint32_t>(users.size())};
  return choose_owners(policy, {.step = Clock{5},
                                .bytes = bytes,
                                .keys = {&key, 1},
                                .owners = {&before, 1},
                                .first_user = first,
                                .users = users})[0];
}

TEST(PlacementPolicies, StaticKeepsTheOwner) {
  EXPECT_EQ(choose(PlacementPolicy::kStatic, 0, {{5, 1}, {6, 1}}), Rank{0});
}

TEST(PlacementPolicies, AdaptiveMovesRowToItsOnlyUser) {
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, {{5, 1}}), Rank{1});
}

TEST(PlacementPolicies, AdaptiveMovesRowWithMuchStateAtItsSecondUse) {
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, {{5, 1}}, kLargeState), Rank{0});
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, {{5, 1}, {8, 1}}, kLargeState), Rank{1});
}

TEST(PlacementPolicies, AdaptiveKeepsRowThatItsOwnerUsesAsMuch) {
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, {{5, 0}, {5, 1}}), Rank{0});
}

TEST(PlacementPolicies, AdaptiveMovesRowToItsMostFrequentUser) {
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, {{5, 1}, {5, 2}, {6, 2}}), Rank{2});
}

// A rank that uses the row later gets it later: a row moves to a rank that reads it anyway.
TEST(PlacementPolicies, RowMovesToUserOfTheStepOnly) {
  for (auto const policy : {PlacementPolicy::kAdaptive, PlacementPolicy::kRelocate, PlacementPolicy::kRandom}) {
    for (std::uint64_t key = 0; key < 50; ++key) {
      auto const owner = choose(policy, 0, {{5, 1}, {6, 2}, {7, 2}, {8, 2}}, kSmallState, Key{key});
      EXPECT_NE(owner, Rank{2});
    }
  }
}

TEST(PlacementPolicies, RelocateKeepsRowThatItsOwnerUses) {
  EXPECT_EQ(choose(PlacementPolicy::kRelocate, 0, {{5, 1}, {5, 0}, {6, 1}}), Rank{0});
  EXPECT_EQ(choose(PlacementPolicy::kRelocate, 0, {{5, 1}, {5, 2}, {6, 2}, {6, 0}}, kLargeState), Rank{2});
}

TEST(PlacementPolicies, RandomReachesAllUsersAndDependsOnTheKeyOnly) {
  std::set<Rank> owners;
  for (std::uint64_t key = 0; key < 100; ++key) {
    std::vector<RowUse> uses{{5, 3}, {5, 1}, {5, 2}};
    auto const owner = choose(PlacementPolicy::kRandom, 0, uses, kSmallState, Key{key});
    std::reverse(uses.begin(), uses.end());
    EXPECT_EQ(choose(PlacementPolicy::kRandom, 0, uses, kSmallState, Key{key}), owner);
    owners.insert(owner);
  }
  EXPECT_EQ(owners, (std::set{Rank{0}, Rank{1}, Rank{2}, Rank{3}}));
}

// Of ranks that use a row as much, each gets some rows, so that none receives the gradients of all.
TEST(PlacementPolicies, SpreadRowsOverTheRanksThatUseThem) {
  for (auto const policy : {PlacementPolicy::kAdaptive, PlacementPolicy::kRelocate}) {
    std::map<Rank, int> rows;
    for (std::uint64_t key = 0; key < 1000; ++key) {
      std::vector<RowUse> uses;
      for (std::int64_t step = 5; step < 9; ++step) uses.insert(uses.end(), {{step, 1}, {step, 2}, {step, 3}});
      auto const owner = choose(policy, 0, uses, kSmallState, Key{key});
      EXPECT_EQ(choose(policy, 0, {uses.rbegin(), uses.rend()}, kSmallState, Key{key}), owner);
      ++rows[owner];
    }
    for (std::uint32_t rank = 1; rank < 4; ++rank) EXPECT_NEAR(rows[Rank{rank}], 333, 70) << name_of(policy);
  }
}

// Two ranks take turns: the row moves with each turn if a turn is longer than a move costs.
TEST(PlacementPolicies, AdaptiveLooksBeyondTheNextMove) {
  std::vector<RowUse> uses{{5, 1}};
  for (std::int64_t step = 6; step < 12; ++step) uses.push_back({step, 2});
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, uses), Rank{1});
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, uses, kLargeState), Rank{0});
  uses.push_back({5, 2});
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, uses, kLargeState), Rank{2});
}

// Returns the fewest bytes that ranks can send for one row from step 5 on, if `owner` owns it there.
double least_bytes(std::uint32_t owner, std::span<std::uint16_t const> steps_of_ranks, RowBytes const& bytes, int step,
                   int steps) {
  double sent = 0;
  for (std::uint32_t rank = 0; rank < steps_of_ranks.size(); ++rank) {
    if (rank != owner && (steps_of_ranks[rank] >> step & 1) != 0) sent += bytes.read + bytes.update;
  }
  if (step + 1 == steps) return sent;
  double least = std::numeric_limits<double>::infinity();
  for (std::uint32_t next = 0; next < steps_of_ranks.size(); ++next) {
    double const move = next == owner ? 0 : bytes.move;
    least = std::min(least, move + least_bytes(next, steps_of_ranks, bytes, step + 1, steps));
  }
  return sent + least;
}

TEST(PlacementPolicies, AdaptiveSendsAsFewBytesAsTheBestSequenceOfOwners) {
  constexpr int kSteps = 6;
  std::mt19937 random(1);
  for (std::uint32_t const ranks : {2U, 3U}) {
    for (int seed = 0; seed < 300; ++seed) {
      RowBytes const& bytes = seed % 2 == 0 ? kSmallState : kLargeState;
      std::vector<std::uint16_t> steps_of_ranks(ranks);
      std::vector<RowUse> uses;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        steps_of_ranks[rank] = random() % (1 << kSteps);
        for (int step = 0; step < kSteps; ++step) {
          if ((steps_of_ranks[rank] >> step & 1) != 0) uses.push_back({5 + step, rank});
        }
      }
      if (uses.empty()) continue;
      auto const all_bytes = [&](std::uint32_t owner) {
        return least_bytes(owner, steps_of_ranks, bytes, 0, kSteps) + (owner == 0 ? 0 : bytes.move);
      };
      double least = all_bytes(0);
      for (std::uint32_t rank = 1; rank < ranks; ++rank) {
        if ((steps_of_ranks[rank] & 1) != 0) least = std::min(least, all_bytes(rank));
      }
      EXPECT_EQ(all_bytes(number(choose(PlacementPolicy::kAdaptive, 0, uses, bytes))), least);
    }
  }
}

TEST(KeyUses, ReturnsEachKeyOfAStepOnceAndForgetsItsUse) {
  KeyUses uses;
  std::vector<Key> const both{Key{7}, Key{9}}, one{Key{7}};
  uses.add(View<Key const>(both), Clock{5}, Rank{0});
  uses.add(View<Key const>(one), Clock{6}, Rank{1});
  uses.add(View<Key const>(one), Clock{5}, Rank{1});
  EXPECT_TRUE(uses.take(Clock{4}).keys.empty());
  auto const first = uses.take(Clock{5});
  EXPECT_EQ(first.keys, both);
  EXPECT_EQ(first.first, (std::vector<std::uint32_t>{0, 2, 3}));
  EXPECT_EQ(first.users[0], (RowUser{Rank{0}, 0b01}));
  EXPECT_EQ(first.users[1], (RowUser{Rank{1}, 0b11}));
  EXPECT_EQ(first.users[2], (RowUser{Rank{0}, 0b01}));
  auto const second = uses.take(Clock{6});
  EXPECT_EQ(second.keys, one);
  EXPECT_EQ(second.users, (std::vector{RowUser{Rank{1}, 0b01}}));
  EXPECT_TRUE(uses.take(Clock{7}).keys.empty());
}

// More users than fit into a cache line, each in its own steps, some of which begin and end while others use the key.
TEST(KeyUses, ReturnsAllUsersOfAFrequentKey) {
  constexpr std::uint32_t kRanks = 40;
  constexpr std::int64_t kSteps = 100;
  auto const uses_in = [](std::uint32_t rank, std::int64_t step) {
    return step < kSteps && step % (rank % 7 + 1) == 0 && step / 20 % 2 == rank % 2;
  };
  KeyUses uses;
  Key const key{3};
  for (std::int64_t step = 0; step < kSteps + kPolicyWindow; ++step) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      if (uses_in(rank, step)) uses.add({&key, 1, Device::host()}, Clock{step}, Rank{rank});
    }
    std::int64_t const now = step - kPolicyWindow + 1;
    if (now < 0) continue;
    std::map<Rank, std::uint16_t> expected, taken;
    bool any = false;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      any = any || uses_in(rank, now);
      for (int later = 0; later < kPolicyWindow; ++later) {
        if (uses_in(rank, now + later))
          expected[Rank{rank}] = static_cast<std::uint16_t>(expected[Rank{rank}] | 1 << later);
      }
    }
    for (auto const& [rank, steps] : uses.take(Clock{now}).users) EXPECT_TRUE(taken.emplace(rank, steps).second);
    if (!any) expected.clear();
    EXPECT_EQ(taken, expected) << "step " << now;
  }
}

TEST(PlacementPolicies, HaveNames) {
  for (auto const policy : kPlacementPolicies) EXPECT_EQ(placement_policy(name_of(policy)), policy);
  test::expect_error([] { placement_policy("lazy"); }, {"'lazy'", "static, relocate, adaptive, random"});
}

}  // namespace
}  // namespace gpups::cache::placement_policy_test
