// SPDX-License-Identifier: Apache-2.0
// Gradients that codecs round and filters delay: no gradient is delayed for more than age_max steps, flushes send all
// that is held, and the sent bytes follow the density and the codec.
#include "tests/cache/residuals_fixture.hpp"

namespace gpups::test::residuals::residuals_test {
namespace {

TEST(GradientResiduals, FlushSendsAllWithNextStep) {
  RowCompression const gradient_compression{.codec = RowCodec::kInt4, .filter = {.age_max = 1000, .density = 0}};
  Workload const work{.idle_share = 0, .gradient_compression = gradient_compression};
  run_ranks(Group::simulated(work.ranks, {.seed = 3, .delay_ms_max = 4}), [&](Group mine) {
    Store store(mine, {.threads = 1});
    store.add_table(table(work.gradient_compression));
    int const rank = static_cast<int>(number(store.rank()));
    Sums sums;
    for (int s = 0; s < 12; s += 2) {
      bring(store, work, s, parts_of(work, s, rank), false);
      store.flush_residuals();  // while that step is in flight
      EXPECT_FALSE(step(store, work, s + 1, parts_of(work, s + 1, rank), false));
      for (int q = 0; q < work.ranks; ++q) {
        add(sums, parts_of(work, s, q));
        add(sums, parts_of(work, s + 1, q));
      }
      EXPECT_EQ(wrong_numbers(store, sums), 0U);
    }
  });
}

TEST(GradientResiduals, FlushIncludesRowsNewInStep) {
  Workload const work{.idle_share = 0, .gradient_compression = {.codec = RowCodec::kInt4}};
  run_ranks(Group::threads(work.ranks), [&](Group mine) {
    Store store(mine, {.threads = 1});
    store.add_table(table(work.gradient_compression));
    bool const brings = number(store.rank()) == 1;
    Sums sums;
    for (int s = 0; s < 4; ++s) {
      std::vector<Part> parts(1);
      for (int k = 0; k < 20; ++k) {
        parts[0].push_back({Key{static_cast<std::uint64_t>(20 * s + k)}, {100 + k, 1, 3 * k, -17, 8}});
      }
      store.flush_residuals();
      EXPECT_FALSE(step(store, work, s, brings ? parts : std::vector<Part>(1), false));
      add(sums, parts);
      EXPECT_EQ(wrong_numbers(store, sums), 0U);
    }
  });
}

// Rank 1 alone pushes gradients, each of 1. Checks after each step that no gradient is older than age_max, and returns
// how many numbers lacked a gradient.
std::size_t count_late_numbers(RowCompression const& gradient_compression) {
  std::uint32_t const age = gradient_compression.filter.age_max;
  constexpr std::uint64_t kKeys = 30;
  Workload const work{.gradient_compression = gradient_compression};
  std::size_t late = 0;
  run_ranks(Group::threads(2), [&](Group mine) {
    Store store(mine, {.threads = 1});
    store.add_table(table(work.gradient_compression));
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
      for (std::size_t at = 0; at < kKeys * kDim && brings; ++at) {
        std::uint64_t const k = at / kDim;
        auto const applied = static_cast<std::int64_t>(-rows.row(k)[at % kDim] * kSamples);
        EXPECT_LE(applied, sums[static_cast<std::size_t>(s)][k]);
        if (s >= static_cast<int>(age)) {
          EXPECT_GE(applied, sums[static_cast<std::size_t>(s) - age][k]) << s << " " << k;
        }
        late += applied < sums[static_cast<std::size_t>(s)][k] ? 1 : 0;
      }
      store.wait_barrier();
    }
  });
  return late;
}

TEST(GradientResiduals, NoGradientExceedsAgeMax) {
  EXPECT_GT(count_late_numbers({.filter = {.age_max = 3, .density = 0}}), 500U);  // only the age sends them
  // Columns that are not among the largest wait, even in rows that reach the threshold.
  EXPECT_GT(count_late_numbers({.top_k = 2, .filter = {.age_max = 3, .density = 0}}), 500U);
  EXPECT_GT(count_late_numbers({.top_k = 2, .filter = {.age_max = 3, .threshold_max = 0}}), 500U);
}

std::uint64_t hash_after(RowCompression const& gradient_compression) {
  std::uint64_t hash = 0;
  run_ranks(Group::threads(3), [&](Group mine) {
    Store store(mine, {.threads = 1});
    auto options = table(gradient_compression);
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

TEST(GradientResiduals, ThresholdZeroMatchesNoFilter) {
  auto const plain = hash_after({});
  EXPECT_EQ(hash_after({.filter = {.age_max = 5, .density = 0.1F, .threshold_max = 0}}), plain);
  EXPECT_EQ(hash_after({.filter = {.age_max = 5, .density = 0.1F, .threshold_max = 0}, .capacity_rows = 2}), plain);
  EXPECT_NE(hash_after({.filter = {.age_max = 5, .density = 0.1F}}), plain);
  EXPECT_NE(hash_after({.codec = RowCodec::kInt8}), plain);
}

TEST(GradientResiduals, RunsAreReproducible) {
  RowCompression const all{
      .codec = RowCodec::kInt4, .top_k = 3, .filter = {.age_max = 5, .density = 0.3F}, .capacity_rows = 7};
  EXPECT_EQ(hash_after(all), hash_after(all));
}

TEST(GradientResiduals, SentBytesFollowDensity) {
  auto const bytes = [](RowCompression const& gradient_compression) {
    Workload const work{.steps = 200,
                        .keys = 400,
                        .entries = 120,
                        .idle_share = 0,
                        .parts = 1,
                        .gradient_compression = gradient_compression};
    return static_cast<double>(train(Group::threads(2), work).gradient_bytes);
  };
  double const all = bytes({.filter = {.age_max = 1000, .threshold_max = 0}});
  double const some = bytes({.filter = {.age_max = 1000, .density = 0.25F}});
  EXPECT_LT(some / all, 0.45);  // the last step flushes the residuals
  EXPECT_GT(some / all, 0.20);
}

TEST(GradientResiduals, BytesPerRowMatchCodec) {
  // Rank 1 uses 1000 keys in each step; the other rank owns about half of them.
  auto const bytes_of_row = [](RowCompression const& gradient_compression) {
    double bytes = 0;
    run_ranks(Group::threads(2), [&](Group mine) {
      Store store(mine, {.threads = 1});
      store.add_table(table(gradient_compression));
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
  constexpr double kNear = 0.2;  // the last block of 64 numbers is not full
  EXPECT_NEAR(bytes_of_row({.codec = RowCodec::kHalf}), 10, kNear);
  EXPECT_NEAR(bytes_of_row({.codec = RowCodec::kBFloat16}), 10, kNear);
  EXPECT_NEAR(bytes_of_row({.codec = RowCodec::kInt8}), 5 + 5 * 4.0 / 64, kNear);  // a scale for 64 numbers
  EXPECT_NEAR(bytes_of_row({.codec = RowCodec::kInt4}), 2.5 + 5 * 4.0 / 64, kNear);
  EXPECT_NEAR(bytes_of_row({.codec = RowCodec::kInt8, .top_k = 2}), 2 + 2 * 4.0 / 64 + 4, kNear);  // a bitmap too
  EXPECT_NEAR(bytes_of_row({.top_k = 2}), 0.5 + 2 * 2 + 4, kNear);  // sums that two bytes hold
  EXPECT_NEAR(bytes_of_row({.codec = RowCodec::kHalf, .filter = {.age_max = 9, .threshold_max = 0}}), 10 + 1.0 / 8,
              kNear);
}

TEST(GradientResiduals, RejectsInvalidOptions) {
  Store store(Group::alone(), {});
  auto const add = [&](RowCompression const& gradient_compression) {
    return [&store, gradient_compression] { store.add_table(table(gradient_compression)); };
  };
  expect_error(add({.codec = static_cast<RowCodec>(9)}), {"the codec number 9 for its gradients", "RowCodec"});
  expect_error(add({.top_k = 6}), {"top_k 6", "its rows have 5", "lower top_k"});
  expect_error(add({.filter = {.age_max = 1, .density = 1.5F}}), {"has filter.density 1.5", "filter.density"});
  expect_error(add({.filter = {.age_max = 1, .threshold_max = -1}}),
               {"has filter.threshold_max -1", "filter.threshold_max"});
  expect_error(add({.filter = {.age_max = 1, .threshold_max = std::numeric_limits<float>::infinity()}}),
               {"has filter.threshold_max inf"});
  expect_error(add({.filter = {.age_max = 0x80000000}}), {"has filter.age_max 2147483648", "filter.age_max"});
  expect_error(add({.capacity_rows = 0}), {"has capacity_rows 0", "capacity_rows"});
}

}  // namespace
}  // namespace gpups::test::residuals::residuals_test
