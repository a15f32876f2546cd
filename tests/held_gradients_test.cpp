// SPDX-License-Identifier: Apache-2.0
// Gradients that codecs round and filters hold back: nothing is lost, over simulated networks, whatever is rounded,
// filtered, forgotten for lack of room or refused; and nothing is later than it may be.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

#include "gpups/gpups.hpp"
#include "tests/expect_error.hpp"
#include "tests/temporary_folder.hpp"

namespace gpups::test {
namespace {

constexpr std::size_t kDim = 5;
constexpr int kSamples = 4;
using Sums = std::map<Key, std::vector<std::int64_t>>;  // of gradients, whole numbers, by column

// Values are minus the sum of gradients over kSamples, exactly: everything is a multiple of 2^-6 and below 2^17.
TableOptions table(RowTransfer const& gradients) {
  return {.name = "t",
          .dim = kDim,
          .initializer = {Initializer::Kind::kConstant, 0},
          .optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 1},
          .grid_log2 = -4,
          .gradients = gradients};
}

struct Workload {
  int ranks = 2;
  int steps = 30;
  std::uint64_t seed = 1;
  std::uint64_t keys = 40;
  int entries = 12;          // of a rank in a step, at most
  double idle_share = 0.2;   // of steps in which a rank other than 0 has no batch
  double refused_share = 0;  // of steps that are refused
  int parts = 2;             // of a batch, all of the same table
  RowTransfer gradients{};
};

struct Entry {
  Key key;
  std::vector<int> amounts;
};
using Part = std::vector<Entry>;

std::mt19937_64 generator(Workload const& work, int step, int rank, int what) {
  std::seed_seq sequence{work.seed, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(rank),
                         static_cast<std::uint64_t>(what)};
  return std::mt19937_64(sequence);
}
bool chance(Workload const& work, int step, int rank, int what, double share) {
  auto random = generator(work, step, rank, what);
  return static_cast<double>(random() % 1000) < 1000 * share;
}
bool is_idle(Workload const& work, int step, int rank) {
  return rank > 0 && chance(work, step, rank, 1, work.idle_share);
}
bool is_refused(Workload const& work, int step) { return chance(work, step, 0, 2, work.refused_share); }

// What a rank brings: small numbers, and at times a large one.
std::vector<Part> parts_of(Workload const& work, int step, int rank) {
  auto random = generator(work, step, rank, 3);
  std::vector<Part> parts(static_cast<std::size_t>(work.parts));
  for (auto& part : parts) {
    part.resize(random() % static_cast<unsigned>(work.entries + 1));
    for (auto& [key, amounts] : part) {
      key = Key{(random() % 2 == 0 ? random() % (work.keys / 8 + 1) : random() % work.keys) * 0x9E3779B97F4A7C15U};
      int const most = random() % 8 == 0 ? 400 : 9;
      for (std::size_t j = 0; j < kDim; ++j) {
        amounts.push_back(static_cast<int>(random() % static_cast<unsigned>(2 * most)) - most);
      }
    }
  }
  return parts;
}

void add(Sums& sums, std::vector<Part> const& parts) {
  for (auto const& part : parts) {
    for (auto const& [key, amounts] : part) {
      auto& sum = sums[key];
      sum.resize(kDim);
      for (std::size_t j = 0; j < kDim; ++j) sum[j] += amounts[j];
    }
  }
}

// One step of this rank. Returns whether it was refused.
bool step(Store& store, Workload const& work, int step, std::vector<Part> const& parts, bool poison) {
  int const rank = static_cast<int>(number(store.rank()));
  if (is_idle(work, step, rank)) {
    store.advance_clock();
  } else {
    auto stream = store.make_stream();
    std::vector<std::vector<Key>> keys;
    std::vector<Matrix<float>> sources;
    std::vector<TableBatch> tables;
    std::vector<TableGradients> gradients;
    for (auto const& part : parts) {
      auto& of_part = keys.emplace_back();
      auto& rows = sources.emplace_back(Device::host(), part.size(), kDim);
      for (std::size_t e = 0; e < part.size(); ++e) {
        of_part.push_back(part[e].key);
        std::copy(part[e].amounts.begin(), part[e].amounts.end(), rows.row(e).begin());
      }
      if (poison && !part.empty()) rows.row(0)[0] = std::numeric_limits<float>::quiet_NaN();
    }
    for (std::size_t p = 0; p < parts.size(); ++p) {
      tables.push_back({.table = TableId{0}, .keys = View<Key const>(keys[p])});
      gradients.push_back({.sources = sources[p]});
    }
    auto const batch = store.prepare(stream, store.clock(), tables, rank == 0 ? kSamples : 0);
    store.wait_ready(batch);
    store.push(stream, batch, gradients);
    store.advance_clock();
  }
  try {
    store.wait_flush();
  } catch (GradientError const&) {
    return true;
  }
  return false;
}

// How many numbers of the table are not what these sums make of them.
std::size_t wrong_numbers(Store& store, Sums const& sums) {
  auto stream = store.make_stream();
  std::vector<Key> keys;
  for (auto const& [key, sum] : sums) keys.push_back(key);
  Matrix<float> rows(Device::host(), keys.size(), kDim);
  store.lookup(stream, TableId{0}, View<Key const>(keys), rows, {});
  std::size_t wrong = 0, row = 0;
  for (auto const& [key, sum] : sums) {
    for (std::size_t j = 0; j < kDim; ++j) {
      wrong += static_cast<double>(rows.row(row)[j]) == static_cast<double>(-sum[j]) / kSamples ? 0 : 1;
    }
    ++row;
  }
  store.wait_barrier();
  return wrong;
}

struct Outcome {
  std::size_t wrong_before = 0, wrong = 0;  // numbers: before everything is sent, and after
  std::uint64_t gradient_bytes = 0;         // of rank 0
  int refused = 0;
};

Outcome train(std::vector<Group> const& group, Workload const& work) {
  Outcome outcome;
  run_ranks(group, [&](Group mine) {
    Store store(mine, {.threads = 1});
    store.add_table(table(work.gradients));
    int const rank = static_cast<int>(number(store.rank()));
    Sums sums;
    int refused = 0;
    for (int s = 0; s < work.steps; ++s) {
      bool bad = is_refused(work, s);
      auto const own = parts_of(work, s, rank);
      bad = step(store, work, s, own, bad && rank == 0);
      refused += bad ? 1 : 0;
      for (int q = 0; q < work.ranks && !bad; ++q) {
        if (!is_idle(work, s, q)) add(sums, parts_of(work, s, q));
      }
    }
    std::size_t const before = wrong_numbers(store, sums);
    store.send_held_back();
    store.advance_clock();
    store.wait_flush();
    std::size_t const after = wrong_numbers(store, sums);
    if (rank == 0) outcome = {before, after, store.stats().sent.gradients, refused};
  });
  return outcome;
}

std::vector<RowTransfer> transfers() {
  std::vector<RowTransfer> all;
  for (auto const codec :
       {RowCodec::kLossless, RowCodec::kHalf, RowCodec::kBFloat16, RowCodec::kInt8, RowCodec::kInt4}) {
    for (std::uint32_t const age : {0U, 1U, 4U}) {
      for (std::size_t const top_k : {std::size_t{0}, std::size_t{2}}) {
        for (std::size_t const rows : {std::size_t{1}, std::size_t{5}, std::size_t{1000}}) {
          all.push_back({.codec = codec, .top_k = top_k, .filter = {.age_max = age, .share = 0.2F}, .rows_max = rows});
        }
      }
    }
  }
  return all;
}

TEST(HeldGradients, NothingIsEverLost) {
  std::uint64_t seed = 0;
  std::size_t held = 0, refused = 0;
  for (auto const& transfer : transfers()) {
    for (int round = 0; round < 2; ++round, ++seed) {
      Workload work{.ranks = 2 + static_cast<int>(seed % 3), .seed = seed, .gradients = transfer};
      work.refused_share = seed % 4 == 0 ? 0.3 : 0;
      SCOPED_TRACE(fmt::format("seed {}, codec {}, age {}, top {}, room {}", seed, static_cast<int>(transfer.codec),
                               transfer.filter.age_max, transfer.top_k, transfer.rows_max));
      auto const outcome = train(
          Group::simulated(work.ranks, {.seed = seed, .delay_ms_max = 1.0 + static_cast<double>(seed % 9)}), work);
      ASSERT_EQ(outcome.wrong, 0U);
      if (transfer.holds_back() && transfer.rows_max == 1000 && transfer.codec == RowCodec::kInt4) {
        ASSERT_GT(outcome.wrong_before, 0U);  // or nothing was held back, and nothing tested
      }
      held += outcome.wrong_before;
      refused += static_cast<std::size_t>(outcome.refused);
    }
  }
  EXPECT_GT(held, 1000U);
  EXPECT_GT(refused, 100U);
}

// What rows are after each step, if rank 1 alone brings gradients: 1 for each of these keys, each time.
TEST(HeldGradients, NoGradientIsLaterThanItMayBe) {
  constexpr std::uint32_t kAge = 3;
  constexpr std::uint64_t kKeys = 30;
  Workload const work{.gradients = {.filter = {.age_max = kAge, .share = 0}}};  // only age sends
  std::size_t late = 0;
  run_ranks(Group::threads(2), [&](Group mine) {
    Store store(mine, {.threads = 1});
    store.add_table(table(work.gradients));
    bool const brings = number(store.rank()) == 1;
    std::vector<std::vector<std::int64_t>> sums;  // by step
    for (int s = 0; s < 40; ++s) {
      std::vector<Part> parts(1);
      sums.push_back(sums.empty() ? std::vector<std::int64_t>(kKeys) : sums.back());
      for (std::uint64_t k = 0; k < kKeys; ++k) {
        if ((static_cast<std::uint64_t>(s) + k) % (k % 7 + 1) != 0) continue;
        sums.back()[k] += 1;
        if (brings) parts[0].push_back({Key{k}, std::vector<int>(kDim, 1)});
      }
      EXPECT_FALSE(step(store, {.idle_share = 0}, s, parts, false));
      std::vector<Key> keys;
      for (std::uint64_t k = 0; k < kKeys; ++k) keys.push_back(Key{k});
      auto stream = store.make_stream();
      Matrix<float> rows(Device::host(), kKeys, kDim);
      store.lookup(stream, TableId{0}, View<Key const>(keys), rows, {});
      for (std::uint64_t k = 0; k < kKeys && brings; ++k) {
        auto const applied = static_cast<std::int64_t>(-rows.row(k)[0] * kSamples);
        EXPECT_LE(applied, sums[static_cast<std::size_t>(s)][k]);
        if (s >= static_cast<int>(kAge)) {
          EXPECT_GE(applied, sums[static_cast<std::size_t>(s) - kAge][k]) << s << " " << k;
        }
        late += applied < sums[static_cast<std::size_t>(s)][k] ? 1 : 0;
      }
      store.wait_barrier();
    }
  });
  EXPECT_GT(late, 100U);
}

std::uint64_t hash_after(RowTransfer const& gradients) {
  std::uint64_t hash = 0;
  run_ranks(Group::threads(3), [&](Group mine) {
    Store store(mine, {.threads = 1});
    auto options = table(gradients);
    options.optimizer = {.kind = Optimizer::Kind::kAdagrad, .learning_rate = 0.1F};
    options.grid_log2 = -30;
    store.add_table(options);
    Workload const work{.ranks = 3};
    for (int s = 0; s < 20; ++s) step(store, work, s, parts_of(work, s, static_cast<int>(number(store.rank()))), false);
    auto const mine_hash = store.table_hash();
    if (number(store.rank()) == 0) hash = mine_hash;
  });
  return hash;
}

TEST(HeldGradients, ABoundOfZeroGivesTheBitsOfNoFilter) {
  auto const plain = hash_after({});
  EXPECT_EQ(hash_after({.filter = {.age_max = 5, .share = 0.1F, .bound = 0}}), plain);
  EXPECT_EQ(hash_after({.filter = {.age_max = 5, .share = 0.1F, .bound = 0}, .rows_max = 2}), plain);
  EXPECT_NE(hash_after({.filter = {.age_max = 5, .share = 0.1F}}), plain);
  EXPECT_NE(hash_after({.codec = RowCodec::kInt8}), plain);
}

TEST(HeldGradients, RunsAreTheSameEachTime) {
  RowTransfer const all{.codec = RowCodec::kInt4, .top_k = 3, .filter = {.age_max = 5, .share = 0.3F}, .rows_max = 7};
  EXPECT_EQ(hash_after(all), hash_after(all));
}

TEST(HeldGradients, TheBoundFollowsTheShareOfRows) {
  auto const bytes = [](RowTransfer const& gradients) {
    Workload const work{.steps = 200, .keys = 400, .entries = 120, .idle_share = 0, .parts = 1, .gradients = gradients};
    return static_cast<double>(train(Group::threads(2), work).gradient_bytes);
  };
  double const all = bytes({.filter = {.age_max = 1000, .bound = 0}});
  double const some = bytes({.filter = {.age_max = 1000, .share = 0.25F}});
  EXPECT_LT(some / all, 0.45);  // the last step sends what is held back
  EXPECT_GT(some / all, 0.20);
}

TEST(HeldGradients, SectionsAreAsLargeAsCodecsSay) {
  // Rank 1 brings 1000 keys each step; the other rank owns about half.
  auto const bytes_of_row = [](RowTransfer const& gradients) {
    double bytes = 0;
    run_ranks(Group::threads(2), [&](Group mine) {
      Store store(mine, {.threads = 1});
      store.add_table(table(gradients));
      std::vector<Part> parts(1);
      for (std::uint64_t k = 0; number(mine.rank()) == 1 && k < 1000; ++k) {
        parts[0].push_back({Key{k}, std::vector<int>(kDim, 100)});
      }
      for (int s = 0; s < 4; ++s) EXPECT_FALSE(step(store, {.idle_share = 0}, s, parts, false));
      auto const stats = store.stats();
      if (number(mine.rank()) == 1) {
        bytes = static_cast<double>(stats.sent.gradients) / static_cast<double>(stats.remote_keys);
      }
    });
    return bytes;
  };
  constexpr double kNear = 0.2;  // the last 64 numbers are not full
  EXPECT_NEAR(bytes_of_row({.codec = RowCodec::kHalf}), 10, kNear);
  EXPECT_NEAR(bytes_of_row({.codec = RowCodec::kBFloat16}), 10, kNear);
  EXPECT_NEAR(bytes_of_row({.codec = RowCodec::kInt8}), 5 + 5 * 4.0 / 64, kNear);  // a scale for 64 numbers
  EXPECT_NEAR(bytes_of_row({.codec = RowCodec::kInt4}), 2.5 + 5 * 4.0 / 64, kNear);
  EXPECT_NEAR(bytes_of_row({.codec = RowCodec::kInt8, .top_k = 2}), 2 + 2 * 4.0 / 64 + 4, kNear);  // a bitmap too
  EXPECT_NEAR(bytes_of_row({.top_k = 2}), 0.5 + 2 * 2 + 4, kNear);  // sums that two bytes hold
  EXPECT_NEAR(bytes_of_row({.codec = RowCodec::kHalf, .filter = {.age_max = 9, .bound = 0}}), 10 + 1.0 / 8, kNear);
}

// A run that stops after some steps, and goes on on another number of ranks.
struct Halves {
  int before, after;  // ranks
};
class HeldGradientsSaved : public testing::TestWithParam<Halves> {};

TEST_P(HeldGradientsSaved, NothingIsLost) {
  TemporaryFolder const folder;
  for (auto const codec : {RowCodec::kLossless, RowCodec::kInt4}) {
    Workload const work{.idle_share = 0,
                        .gradients = {.codec = codec, .filter = {.age_max = 9, .share = 0.1F}, .rows_max = 20}};
    auto const [before, after] = GetParam();
    Sums sums;
    std::size_t held = 0;
    auto const half = [&](int ranks, int first, bool restores, bool ends) {
      for (int s = first; s < first + 10; ++s) {
        for (int q = 0; q < ranks; ++q) add(sums, parts_of(work, s, q));
      }
      auto const group = ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks);
      run_ranks(group, [&](Group mine) {
        Store store(mine, {.threads = 1});
        store.add_table(table(work.gradients));
        if (restores) store.restore(folder.path());
        int const rank = static_cast<int>(number(store.rank()));
        for (int s = first; s < first + 10; ++s) EXPECT_FALSE(step(store, work, s, parts_of(work, s, rank), false));
        std::size_t const wrong = wrong_numbers(store, sums);
        if (rank == 0) held += wrong;
        if (!ends) return store.save(folder.path(), {});
        store.send_held_back();
        store.advance_clock();
        store.wait_flush();
        EXPECT_EQ(wrong_numbers(store, sums), 0U);
      });
    };
    half(before, 0, false, false);
    EXPECT_GT(held, 0U);  // or nothing was saved
    half(after, 10, true, true);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, HeldGradientsSaved,
                         testing::Values(Halves{2, 2}, Halves{2, 3}, Halves{2, 1}, Halves{3, 2}, Halves{4, 3}),
                         [](auto const& halves) {
                           return fmt::format("{}then{}", halves.param.before, halves.param.after);
                         });

TEST(HeldGradients, AResumedRunHasTheBitsOfOneThatNeverStopped) {
  TemporaryFolder const folder;
  RowTransfer const all{.codec = RowCodec::kInt4, .top_k = 3, .filter = {.age_max = 5, .share = 0.3F}, .rows_max = 7};
  Workload const work{.ranks = 3, .gradients = all};
  std::uint64_t through = 0, resumed = 0;
  run_ranks(Group::threads(3), [&](Group mine) {
    Store store(mine, {.threads = 1});
    store.add_table(table(all));
    int const rank = static_cast<int>(number(store.rank()));
    for (int s = 0; s < 20; ++s) {
      if (s == 10) store.save(folder.path(), {});
      step(store, work, s, parts_of(work, s, rank), false);
    }
    auto const hash = store.table_hash();
    if (rank == 0) through = hash;
  });
  run_ranks(Group::threads(3), [&](Group mine) {
    Store store(mine, {.threads = 1});
    store.add_table(table(all));
    int const rank = static_cast<int>(number(store.rank()));
    store.restore(folder.path());
    for (int s = 10; s < 20; ++s) step(store, work, s, parts_of(work, s, rank), false);
    auto const hash = store.table_hash();
    if (rank == 0) resumed = hash;
  });
  EXPECT_EQ(resumed, through);
}

TEST(HeldGradients, WrongOptions) {
  Store store(Group::alone(), {});
  auto const add = [&](RowTransfer const& gradients) {
    return [&store, gradients] { store.add_table(table(gradients)); };
  };
  expect_error(add({.codec = static_cast<RowCodec>(9)}), {"a codec of type 9 for its gradients", "RowCodec"});
  expect_error(add({.top_k = 6}), {"the 6 largest columns", "its rows have 5", "lower top_k"});
  expect_error(add({.filter = {.age_max = 1, .share = 1.5F}}), {"a share of 1.5", "filter.share"});
  expect_error(add({.filter = {.age_max = 1, .bound = -1}}), {"a bound of -1", "filter.bound"});
  expect_error(add({.filter = {.age_max = 1, .bound = std::numeric_limits<float>::infinity()}}), {"a bound of inf"});
  expect_error(add({.filter = {.age_max = 0x80000000}}), {"for 2147483648 steps", "filter.age_max"});
  expect_error(add({.rows_max = 0}), {"of 0 rows", "rows_max"});
}

}  // namespace
}  // namespace gpups::test
