// SPDX-License-Identifier: Apache-2.0
// The policies that decide who owns a row.
#include "cache/placement/policy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "gpups/array.hpp"
#include "kernels/base/hash.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::cache::placement_policy_test {
namespace {

constexpr RowBytes kSmallState{.read = 256, .update = 256, .move = 268};
constexpr RowBytes kLargeState{.read = 256, .update = 256, .move = 768};

struct RowUse {
  std::int64_t step;
  std::uint32_t rank;
};

// As many bytes of keys as of numbers, as narrow rows have.
constexpr RowBytes kNarrow{.read = 2, .update = 4, .move = 5, .forward = 2, .route = 1};
constexpr std::uint32_t kRanks = 4;

using Hosts = std::vector<std::uint32_t>;  // by rank; empty: one host
constexpr std::int64_t kBetween = 5;       // what a byte between hosts costs

// Returns the owner from step 5 on of one row that `owner` owned before.
Rank choose(PlacementPolicy policy, std::uint32_t owner, std::vector<RowUse> const& uses,
            RowBytes const& bytes = kSmallState, Key key = Key{1}, Hosts const& hosts = {}) {
  std::vector<RowUser> users;
  for (auto const& [step, rank] : uses) {
    auto user = std::find_if(users.begin(), users.end(), [&](auto const& one) { return one.rank == Rank{rank}; });
    if (user == users.end()) user = users.insert(user, {Rank{rank}, 0});
    user->steps |= 1U << (step - 5);
  }
  auto stream = Stream(Device::host(), 1);
  std::vector<std::uint32_t> const owners{owner}, first{0}, count{static_cast<std::uint32_t>(users.size())};
  std::vector<std::int64_t> sent(users.size());
  std::vector<std::uint32_t> chosen(1);
  kernels::RowsOfTable const table{.first = 0, .size = 1, .bytes = bytes, .policy = policy};
  kernels::choose_owners(stream, {.step = Clock{5},
                                  .ranks = kRanks,
                                  .tables = {&table, 1},
                                  .keys = {&key, 1, Device::host()},
                                  .owners = owners,
                                  .first_user = first,
                                  .user_count = count,
                                  .users = users,
                                  .sent = sent,
                                  .hosts = {hosts.empty() ? nullptr : hosts.data(), kBetween},
                                  .chosen = chosen});
  return Rank{chosen[0]};
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

// Returns what a byte from one rank to another costs.
double times(Hosts const& hosts, std::uint32_t from, std::uint32_t to) {
  return hosts.empty() || hosts[from] == hosts[to] ? 1 : kBetween;
}

// The uses of one row with the home `home`, and what ranks send for it.
struct OneRow {
  std::vector<std::uint16_t> steps_of_ranks;
  std::uint32_t home;
  RowBytes bytes;
  Hosts hosts;

  bool uses(std::uint32_t rank, int step) const { return (steps_of_ranks[rank] >> step & 1) != 0; }

  // Returns the fewest bytes that ranks can send from a step on, if `owner` owns the row in it, and only these own it.
  double least_bytes(std::uint32_t owner, std::set<std::uint32_t> const& owners, int step, int steps) const {
    double sent = 0;
    for (std::uint32_t rank = 0; rank < steps_of_ranks.size(); ++rank) {
      if (!uses(rank, step)) continue;
      bool const is_away = owner != home;
      if (rank != owner) sent += times(hosts, owner, rank) * static_cast<double>(bytes.read + bytes.update);
      if (rank != owner && is_away) sent += times(hosts, home, owner) * static_cast<double>(bytes.forward);
      if (rank != home && is_away) sent += times(hosts, home, rank) * static_cast<double>(bytes.route);
    }
    if (step + 1 == steps) return sent;
    double least = std::numeric_limits<double>::infinity();
    for (auto const next : owners) {
      double const move = next == owner ? 0 : times(hosts, owner, next) * static_cast<double>(bytes.with_keys());
      least = std::min(least, move + least_bytes(next, owners, step + 1, steps));
    }
    return sent + least;
  }
};

TEST(PlacementPolicies, AdaptiveSendsAsFewBytesAsTheBestSequenceOfOwners) {
  constexpr int kSteps = 6;
  constexpr RowBytes kAll[] = {kSmallState, kLargeState, kNarrow};
  std::mt19937 random(1);
  for (Hosts const& hosts : std::vector<Hosts>{{}, {}, {0, 1}, {0, 0, 1}, {0, 1, 2}, {0, 1, 1, 2}}) {
    std::uint32_t const ranks = hosts.empty() ? 2 + random() % 2 : static_cast<std::uint32_t>(hosts.size());
    for (int seed = 0; seed < 450; ++seed) {
      Key const key{random() % 1000};
      Hosts of_all = hosts;  // the home may be another rank than those that use the row
      if (!of_all.empty()) of_all.resize(kRanks, hosts.back());
      OneRow row{{}, kernels::home_of(key, kRanks), kAll[seed % 3], of_all};
      std::vector<RowUse> uses;
      std::uint32_t const first = random() % ranks;
      std::set<std::uint32_t> owners{first};
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        row.steps_of_ranks.push_back(random() % (1 << kSteps));
        if (row.steps_of_ranks.back() != 0) owners.insert(rank);
        for (int step = 0; step < kSteps; ++step) {
          if (row.uses(rank, step)) uses.push_back({5 + step, rank});
        }
      }
      if (uses.empty()) continue;
      auto const all_bytes = [&](std::uint32_t owner) {
        double const move =
            owner == first ? 0 : times(of_all, first, owner) * static_cast<double>(row.bytes.with_keys());
        return row.least_bytes(owner, owners, 0, kSteps) + move;
      };
      double least = all_bytes(first);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        if (row.uses(rank, 0)) least = std::min(least, all_bytes(rank));
      }
      auto const owner = choose(PlacementPolicy::kAdaptive, first, uses, row.bytes, key, of_all);
      EXPECT_EQ(all_bytes(number(owner)), least) << ranks << " ranks, seed " << seed;
    }
  }
}

// A narrow row stays at its home if moving it saves less than the keys that it takes while it is away.
TEST(PlacementPolicies, AdaptiveCountsKeysOfRowsThatAreAway) {
  Key key{0};
  while (kernels::home_of(key, kRanks) != 0) key = Key{number(key) + 1};
  RowBytes bytes{.read = 4, .update = 4, .move = 8, .forward = 2, .route = 1};
  std::vector<RowUse> const uses{{5, 1}, {6, 0}, {6, 1}, {7, 0}, {7, 1}, {8, 1}};
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, uses, bytes, key), Rank{0});
  bytes.forward = bytes.route = 0;
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 0, uses, bytes, key), Rank{1});
}

// A row goes to the host with the most users, not to the rank that uses it most.
TEST(PlacementPolicies, AdaptiveKeepsBytesWithinHosts) {
  std::vector<RowUse> uses;
  for (std::int64_t step = 5; step < 9; ++step) uses.insert(uses.end(), {{step, 1}, {step, 2}, {step, 3}});
  uses.insert(uses.end(), {{9, 1}, {10, 1}});
  EXPECT_EQ(choose(PlacementPolicy::kAdaptive, 1, uses), Rank{1});
  EXPECT_NE(choose(PlacementPolicy::kAdaptive, 1, uses, kSmallState, Key{1}, {0, 0, 1, 1}), Rank{1});
}

TEST(PlacementPolicies, NarrowRowsStayIfOnlyAdaptiveWouldMoveThem) {
  PlacementRules rules{.policy = PlacementPolicy::kAdaptive, .bytes_min = 100};
  EXPECT_EQ(rules.policy_of({.dim = 12}), PlacementPolicy::kStatic);
  EXPECT_EQ(rules.policy_of({.dim = 13}), PlacementPolicy::kAdaptive);
  RowCompression const half{.codec = RowCodec::kHalf};
  EXPECT_EQ(rules.policy_of({.dim = 24, .gradient_compression = half, .refresh_compression = half}),
            PlacementPolicy::kStatic);
  rules.policy = PlacementPolicy::kRandom;
  EXPECT_EQ(rules.policy_of({.dim = 1}), PlacementPolicy::kRandom);
}

// The bytes of a use are those of the codec, its scales, and the rows that a filter sends.
TEST(PlacementPolicies, BytesAreThoseOfCodecs) {
  TableOptions table{.dim = 64, .optimizer = {.kind = Optimizer::Kind::kRowwiseAdagrad}};
  EXPECT_EQ(row_bytes(table).read, 256);
  EXPECT_EQ(row_bytes(table).move, 256 + 4 + 8);
  table.gradient_compression = {.codec = RowCodec::kInt8};
  table.refresh_compression = {.codec = RowCodec::kHalf};
  EXPECT_EQ(row_bytes(table).update, 64 + 4);
  EXPECT_EQ(row_bytes(table).read, 128);
  EXPECT_EQ(row_bytes(table).move, 256 + 4 + 8);
  table.gradient_compression = {.codec = RowCodec::kInt4, .top_k = 16};
  table.refresh_compression = {.filter = {.age_max = 100, .density = .25F}};
  EXPECT_EQ(row_bytes(table).update, 16 / 2 + 64 / 8 + 1);
  EXPECT_EQ(row_bytes(table).read, 64);
}

TEST(PlacementPolicies, HaveNames) {
  for (auto const policy : kPlacementPolicies) EXPECT_EQ(placement_policy(name_of(policy)), policy);
  test::expect_error([] { placement_policy("lazy"); }, {"'lazy'", "static, relocate, adaptive, random"});
}

}  // namespace
}  // namespace gpups::cache::placement_policy_test
