// SPDX-License-Identifier: Apache-2.0
// Top-k allreduces over the ranks of a group: nothing is lost, with any algorithm, format and later number of ranks,
// and the bytes follow the density.
#include "gpups/top_k_allreduce.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test::top_k_allreduce_test {
namespace {

using Units = std::vector<std::int64_t>;
constexpr std::size_t kSize = 20000;

// Returns the gradient of a rank in a step: normal numbers, multiples of the grid.
Units gradient(int rank, int step, std::size_t size = kSize) {
  Random random(1000 * static_cast<std::uint64_t>(step) + static_cast<std::uint64_t>(rank));
  std::normal_distribution<double> normal(0, 0x1p20);
  Units units(size);
  for (auto& u : units) u = std::llround(normal(random));
  return units;
}
std::vector<float> as_floats(Units const& units) {
  std::vector<float> floats;
  for (auto const u : units) floats.push_back(static_cast<float>(static_cast<double>(u) * 0x1p-30));
  return floats;
}

void run_on_ranks(std::vector<Group> const& groups, std::function<void(Group)> const& body) { run_ranks(groups, body); }
std::vector<Group> threads(int ranks) { return ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks); }

void add_to(Units& all, View<std::int64_t const> more) {
  for (std::size_t i = 0; i < all.size(); ++i) all[i] += more[i];
}

// The sum of all gradients, the sum of what has been applied, and the residuals at the end.
struct Account {
  Units given = Units(kSize, 0), applied = Units(kSize, 0), waiting = Units(kSize, 0);
  std::vector<std::string> saved;         // by rank
  std::vector<std::uint64_t> sent_bytes;  // by rank
  std::uint64_t nonzeros_most = 0;        // of a sum

  void expect_nothing_lost() const {
    for (std::size_t i = 0; i < kSize; ++i) ASSERT_EQ(applied[i] + waiting[i], given[i]) << "at " << i;
  }
};

// Runs steps first .. last - 1. Continues from the saved state in the account.
void train(Account& account, std::vector<Group> const& groups, TopKOptions const& options, int first, int last) {
  auto const ranks = groups.size();
  for (int step = first; step < last; ++step) {
    for (std::size_t r = 0; r < ranks; ++r) add_to(account.given, gradient(static_cast<int>(r), step));
  }
  std::vector<Units> applied(ranks, Units(kSize, 0));
  auto const before = std::exchange(account.saved, std::vector<std::string>(ranks));
  account.waiting.assign(kSize, 0);
  account.sent_bytes.assign(ranks, 0);
  std::mutex mutex;
  run_on_ranks(groups, [&](Group group) {
    Store store(group, {.threads = 1});
    Stream stream = store.make_stream();
    TopKAllreduce sum(group, kSize, options);
    if (!before.empty()) sum.restore(before);
    auto& mine = applied[number(group.rank())];
    for (int step = first; step < last; ++step) {
      sum.begin(stream, to_device(stream, gradient(static_cast<int>(number(group.rank())), step)).view());
      Units sums(kSize);
      sum.wait(stream, View<std::int64_t>(sums));
      add_to(mine, sums);
      std::lock_guard const lock(mutex);
      auto const zeros = static_cast<std::uint64_t>(std::count(sums.begin(), sums.end(), 0));
      account.nonzeros_most = std::max(account.nonzeros_most, kSize - zeros);
    }
    store.wait_barrier();
    std::lock_guard const lock(mutex);
    add_to(account.waiting, sum.residual());
    account.saved[number(group.rank())] = sum.save();
    account.sent_bytes[number(group.rank())] = store.stats().sent.allreduces;
  });
  for (auto const& other : applied) EXPECT_TRUE(other == applied[0]) << "ranks have different sums";
  add_to(account.applied, applied[0]);
}

TEST(TopKAllreduce, NoGradientIsLost) {
  for (auto const& algorithm : top_k_algorithms()) {
    for (auto const format : {WireFormat::kFloat, WireFormat::kHalf, WireFormat::kBFloat16, WireFormat::kInt8}) {
      for (int ranks = 1; ranks <= 5; ++ranks) {
        if (format != WireFormat::kFloat && ranks != 3) continue;  // any number of ranks codes in the same way
        SCOPED_TRACE(testing::Message() << algorithm.name << " in " << name_of(format) << ", " << ranks << " ranks");
        TopKOptions const options{
            .density = .01, .initial_density = .1, .warmup_steps = 3, .algorithm = algorithm.name, .format = format};
        Account account;
        train(account, threads(ranks), options, 0, 8);
        account.expect_nothing_lost();
        EXPECT_GE(account.nonzeros_most, 1000U);
      }
    }
  }
}

// All elements are sent in few bits: an allreduce with error feedback. The residual is the rounding error of one step,
// and does not grow with steps.
TEST(TopKAllreduce, NoGradientIsLostAtFullDensity) {
  constexpr double kLargest = 10 * 0x1p20;  // more than any element of four gradients
  for (auto const& algorithm : top_k_algorithms()) {
    for (auto const format : {WireFormat::kInt8, WireFormat::kBFloat16}) {
      for (int ranks = 2; ranks <= 4; ++ranks) {
        SCOPED_TRACE(testing::Message() << algorithm.name << " in " << name_of(format) << ", " << ranks << " ranks");
        Account account;
        for (int step = 0; step < 8; ++step) {
          train(account, threads(ranks), {.density = 1, .algorithm = algorithm.name, .format = format}, step, step + 1);
          account.expect_nothing_lost();
          double most = 0;
          for (auto const u : account.waiting) most = std::max(most, std::abs(static_cast<double>(u)));
          EXPECT_GT(most, 0);
          EXPECT_LE(most, ranks * kLargest * (format == WireFormat::kInt8 ? 1. / 254 : 1. / 512));
          EXPECT_GE(account.nonzeros_most, kSize - kSize / 50);
        }
      }
    }
  }
}

// Elements of a million and more, of which a half can send 65,504 in a step.
TEST(TopKAllreduce, KeepsWhatExceedsHalf) {
  for (auto const& algorithm : top_k_algorithms()) {
    for (int const ranks : {2, 3}) {
      SCOPED_TRACE(testing::Message() << algorithm.name << ", " << ranks << " ranks");
      Account account;
      constexpr int kSteps = 2;
      train(account, threads(ranks),
            {.density = .01, .algorithm = algorithm.name, .format = WireFormat::kHalf, .grid_log2 = 0}, 0, kSteps);
      account.expect_nothing_lost();
      std::int64_t most = 0;
      for (auto const u : account.applied) most = std::max(most, std::abs(u));
      EXPECT_GE(most, 65504);
      EXPECT_LE(most, kSteps * ranks * 65504);
    }
  }
}

TEST(TopKAllreduce, ContinuesOnAnyNumberOfRanks) {
  TopKOptions const options{.density = .01, .initial_density = .1, .warmup_steps = 4};
  Account account;
  int step = 0;
  for (int const ranks : {2, 3, 1, 4, 2}) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks from step " << step);
    train(account, threads(ranks), options, step, step + 3);
    account.expect_nothing_lost();
    step += 3;
  }
}

TEST(TopKAllreduce, ResumedRunEndsWithSameBits) {
  for (float const momentum : {0.0F, .5F}) {
    TopKOptions const options{.density = .02, .initial_density = .1, .warmup_steps = 4, .momentum = momentum};
    Account whole, in_parts;
    train(whole, threads(3), options, 0, 9);
    for (int step = 0; step < 9; step += 3) train(in_parts, threads(3), options, step, step + 3);
    EXPECT_TRUE(whole.applied == in_parts.applied && whole.saved == in_parts.saved);
  }
}

TEST(TopKAllreduce, ResultDoesNotDependOnNetwork) {
  TopKOptions const options{.density = .02};
  Account over_threads;
  train(over_threads, threads(3), options, 0, 3);
  for (std::uint64_t const seed : {1, 2, 3}) {
    Account simulated;
    train(simulated, Group::simulated(3, {.seed = seed}), options, 0, 3);
    EXPECT_TRUE(simulated.applied == over_threads.applied && simulated.saved == over_threads.saved);
  }
}

// With SparDL a sum has at most as many elements as each rank sends. An element takes 3 bytes, beside headers and
// blocks, and is sent 2 (P - 1) / P times.
TEST(TopKAllreduce, BytesDoNotGrowWithRanks) {
  for (int const ranks : {2, 3, 4, 5}) {
    Account account;
    int const steps = 4;
    train(account, threads(ranks), {.density = .01, .algorithm = "spardl"}, 0, steps);
    std::size_t const k = kSize / 100;
    EXPECT_LE(account.nonzeros_most, k);
    for (auto const bytes : account.sent_bytes) {
      EXPECT_LE(bytes, static_cast<std::uint64_t>(steps * (2 * (ranks - 1) * (4 * static_cast<int>(k) / ranks + 300))));
      EXPECT_GE(bytes, static_cast<std::uint64_t>(steps) * k);
    }
  }
}

TEST(TopKAllreduce, AppliesLargestOfEachRank) {
  for (bool const floats : {false, true}) {
    run_on_ranks(threads(2), [&](Group group) {
      Store store(group, {.threads = 1});
      Stream stream = store.make_stream();
      TopKAllreduce sum(group, 6, {.density = .3, .initial_density = .3, .format = WireFormat::kFloat});
      bool const first = number(group.rank()) == 0;
      Units const mine = first ? Units{5, -900, 3, 0, 700, 1} : Units{-800, 100, 2, 7, 600, 4};
      Units sums(6);
      std::vector<float> float_sums(6);
      if (floats) {
        sum.begin(stream, to_device(stream, as_floats(mine)).view());
        sum.wait(stream, View<float>(float_sums));
        for (std::size_t i = 0; i < 6; ++i) {
          sums[i] = std::llround(static_cast<double>(float_sums[i]) * 0x1p30);
        }
      } else {
        sum.begin(stream, to_device(stream, mine).view());
        sum.wait(stream, View<std::int64_t>(sums));
      }
      EXPECT_EQ(sums, (Units{-800, -900, 0, 0, 1300, 0}));
      Units const waiting(sum.residual().begin(), sum.residual().end());
      EXPECT_EQ(waiting, first ? (Units{5, 0, 3, 0, 0, 1}) : (Units{0, 100, 2, 7, 0, 4}));
      store.wait_barrier();
    });
  }
}

// If a sum has more bits than a float, the rest stays in the residual of one rank.
TEST(TopKAllreduce, KeepsFloatRoundingErrors) {
  for (auto const& algorithm : top_k_algorithms()) {
    for (int const ranks : {1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << algorithm.name << ", " << ranks << " ranks");
      std::int64_t const large = std::int64_t{1} << 30;
      std::vector<std::int64_t> waiting(static_cast<std::size_t>(ranks)), applied(waiting);
      run_on_ranks(threads(ranks), [&](Group group) {
        Store store(group, {.threads = 1});
        Stream stream = store.make_stream();
        TopKAllreduce sum(group, 3, {.density = 1, .algorithm = algorithm.name, .format = WireFormat::kFloat});
        std::size_t const me = number(group.rank());
        std::vector<float> sums(3);
        Units const mine{0, me == 0 ? large + 1 : 1, 0};
        sum.begin(stream, to_device(stream, mine).view());
        sum.wait(stream, View<float>(sums));
        applied[me] = std::llround(static_cast<double>(sums[1]) * 0x1p30);
        waiting[me] = sum.residual()[1];
        store.wait_barrier();
      });
      EXPECT_EQ(applied, std::vector<std::int64_t>(applied.size(), large));
      EXPECT_EQ(std::accumulate(waiting.begin(), waiting.end(), std::int64_t{0}), ranks);
    }
  }
}

TEST(TopKAllreduce, MomentumCorrectionSendsVelocities) {
  Group group = Group::alone();
  Store store(group, {.threads = 1});
  Stream stream = store.make_stream();
  TopKAllreduce sum(group, 2, {.density = .5, .initial_density = .5, .momentum = .5F});
  std::vector<float> sums(2);
  sum.begin(stream, View<float const>(std::vector<float>{1, .25F}));
  sum.wait(stream, View<float>(sums));
  EXPECT_EQ(sums, (std::vector<float>{1, 0}));
  sum.begin(stream, View<float const>(std::vector<float>{0, .25F}));
  sum.wait(stream, View<float>(sums));
  EXPECT_EQ(sums, (std::vector<float>{0, .25F + .375F}));
  sum.begin(stream, View<std::int64_t const>(Units{3, std::int64_t{1} << 28}));
  sum.wait(stream, View<float>(sums));
  EXPECT_EQ(sums, (std::vector<float>{0, .25F}));  // the velocity was reset where it was sent
}

TEST(TopKAllreduce, DensityDecreasesDuringWarmUp) {
  Group group = Group::alone();
  Store store(group, {.threads = 1});
  Stream stream = store.make_stream();
  TopKAllreduce sum(group, 1000, {.density = .001, .warmup_steps = 4});
  Units sums(1000);
  std::vector<std::int64_t> sent;
  for (int step = 0; step < 6; ++step) {
    EXPECT_NEAR(sum.density(), step < 4 ? .25 * std::pow(.004, step / 4.) : .001, 1e-12);
    sum.begin(stream, View<std::int64_t const>(gradient(0, step, 1000)));
    sum.wait(stream, View<std::int64_t>(sums));
    sent.push_back(1000 - std::count(sums.begin(), sums.end(), 0));
  }
  EXPECT_EQ(sent[0], 250);
  EXPECT_TRUE(std::is_sorted(sent.rbegin(), sent.rend()));
  EXPECT_LE(sent[5], 2);
}

// The other ranks get the sum of their gradients, and do not wait for a rank that has thrown.
TEST(TopKAllreduce, LeavesOutTooLargeGradient) {
  run_on_ranks(threads(3), [](Group group) {
    Store store(group, {.threads = 1});
    Stream stream = store.make_stream();
    TopKAllreduce sum(group, kSize, {.density = 1, .algorithm = "sparse_allgather", .format = WireFormat::kFloat});
    Units values(kSize, 5);
    bool const wrong = number(group.rank()) == 1;
    if (wrong) values[9000] = values[15000] = -(std::int64_t{1} << 46);
    auto const at = sum.begin_checked(stream, View<std::int64_t const>(values));
    ASSERT_EQ(at.has_value(), wrong);
    if (at) {
      EXPECT_EQ(*at, 9000U);
    }
    sum.wait(stream, View<std::int64_t>(values));
    EXPECT_EQ(values, Units(kSize, 10));
    store.wait_barrier();
  });
}

// More objects than may be in flight are destroyed one after the other: their sums end without them.
TEST(TopKAllreduce, DestructorReleasesUnfinishedSum) {
  for (int const ranks : {1, 2, 3}) {
    run_on_ranks(threads(ranks), [&](Group group) {
      Store store(group, {.threads = 1});
      Stream stream = store.make_stream();
      Units const values(50, 1);
      for (std::size_t i = 0; i < 3 * Group::kAllreducesMax; ++i) {
        TopKAllreduce left(group, 50, {});
        left.begin(stream, View<std::int64_t const>(values));
        if (i % 2 == 1) left = TopKAllreduce(group, 50, {});
      }
      TopKAllreduce sum(group, 50, {.density = 1, .algorithm = "ssar_split_allgather", .format = WireFormat::kFloat});
      sum.begin(stream, View<std::int64_t const>(values));
      Units sums(50);
      sum.wait(stream, View<std::int64_t>(sums));
      EXPECT_EQ(sums, Units(50, ranks));
      store.wait_barrier();
    });
  }
}

}  // namespace
}  // namespace gpups::test::top_k_allreduce_test
