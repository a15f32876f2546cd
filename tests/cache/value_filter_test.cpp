// SPDX-License-Identifier: Apache-2.0
// Values that are sent as changes: what readers see of rows that a codec rounds and a filter delays.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::test::value_filter_test {
namespace {

constexpr std::size_t kDim = 40, kKeys = 30;

struct Seen {
  double off_most = 0, off_last = 0;  // largest errors of the values read, in all steps and in the last
  std::uint64_t bytes = 0;            // of refreshes
  std::uint64_t hash = 0;
};

// The steps in which rank 1 reads the rows: `first`, and every `every`-th step after it.
struct ReadSteps {
  int first = 0, every = 1;
  bool in(int step) const { return step >= first && (step - first) % every == 0; }
};

// Both ranks read rows, and change them by at most 1/8 in each step of the first half. Errors are counted in the steps
// in which rank 1 reads.
Seen read_while_training(RowCompression const& refresh_compression, int steps = 40, ReadSteps read_steps = {}) {
  Seen seen;
  std::mutex mutex;
  run_ranks(Group::threads(2), [&](Group mine) {
    Store store(mine, {.threads = 1});
    store.add_table({.name = "t",
                     .dim = kDim,
                     .initializer = {Initializer::Kind::kNormal, 0.5F},
                     .optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 1},
                     .refresh_compression = refresh_compression});
    auto stream = store.make_stream();
    std::vector<Key> keys;
    for (std::uint64_t k = 0; k < kKeys; ++k) keys.push_back(Key{k});
    bool const is_reader = number(mine.rank()) == 1;
    for (int s = 0; s < steps; ++s) {
      std::size_t const count = is_reader && !read_steps.in(s) ? 0 : kKeys;
      TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys).slice(0, count)};
      auto const batch = store.prepare(stream, store.clock(), {&part, 1}, 1);
      store.wait_ready(batch);
      Matrix<float> rows(Device::host(), count, kDim), truth(Device::host(), count, kDim),
          sources(Device::host(), count, kDim);
      MatrixView<float> const out = rows;
      store.pull(stream, batch, {&out, 1});
      store.lookup(stream, TableId{0}, batch.keys(0), truth, {});
      double off = 0;
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = 0; j < kDim; ++j) {
          off = std::max(off, std::abs(static_cast<double>(rows.row(i)[j]) - static_cast<double>(truth.row(i)[j])));
          auto const wave = std::sin(static_cast<double>(i * 7 + j) + s);
          sources.row(i)[j] = s < steps / 2 ? static_cast<float>(wave / 8) : 0;
        }
      }
      store.wait_barrier();
      TableGradients const gradients{.sources = sources};
      store.push(stream, batch, {&gradients, 1});
      store.advance_clock();
      store.wait_applied();
      std::lock_guard lock(mutex);
      if (read_steps.every == 1 || is_reader) seen.off_most = std::max(seen.off_most, off);
      if (is_reader) seen.off_last = off;
    }
    auto const hash = store.table_hash();
    auto const sent = store.stats().sent;
    std::lock_guard lock(mutex);
    seen.hash = hash;
    seen.bytes += sent.refreshes + sent.late_fetches;
  });
  return seen;
}

TEST(RefreshCompression, RoundingErrorIsAddedToNextChange) {
  for (auto const codec : {RowCodec::kHalf, RowCodec::kBFloat16, RowCodec::kInt8, RowCodec::kInt4}) {
    auto const seen = read_while_training({.codec = codec});
    EXPECT_GT(seen.off_most, 0) << static_cast<int>(codec);
    EXPECT_LT(seen.off_most, 0.1) << static_cast<int>(codec);
    EXPECT_LT(seen.off_last, 1e-6) << static_cast<int>(codec);  // rows have not changed for many steps
  }
}

TEST(RefreshCompression, FilterDelaysNoLongerThanAgeMax) {
  auto const seen = read_while_training({.filter = {.age_max = 4, .density = 0, .threshold_max = 1}});
  EXPECT_GT(seen.off_most, 0.1);
  EXPECT_LT(seen.off_most, 4 * 0.125 + 0.01);  // the changes of 4 steps
  EXPECT_EQ(seen.off_last, 0);
}

// A reader that reads rarely must get every change that is older than age_max.
TEST(RefreshCompression, RareReaderSeesNothingOlderThanAgeMax) {
  RowFilter const filter{.age_max = 4, .density = 0, .threshold_max = 1};
  EXPECT_EQ(read_while_training({.filter = filter}, 40, {.every = 10}).off_most, 0);
  EXPECT_EQ(read_while_training({.filter = filter}, 40, {.every = 5}).off_most, 0);
  auto const seen = read_while_training({.filter = filter}, 40, {.every = 3});
  EXPECT_GT(seen.off_most, 0.1);
  EXPECT_LT(seen.off_most, 3 * 0.125 + 0.01);  // at the read after that the change is too old
}

// The mirror of a new reader has the initial values.
TEST(RefreshCompression, FirstReadGetsCurrentValues) {
  RowFilter const filter{.age_max = 1000, .density = 0, .threshold_max = 100};
  EXPECT_EQ(read_while_training({.filter = filter}, 11, {.first = 10, .every = 50}).off_most, 0);
}

TEST(RefreshCompression, LosslessChangesKeepAllBits) {
  auto const all = read_while_training({});
  auto const changed = read_while_training({.filter = {.age_max = 1, .threshold_max = 0}});
  EXPECT_EQ(changed.off_most, 0);
  EXPECT_EQ(changed.hash, all.hash);
  EXPECT_LT(static_cast<double>(changed.bytes),
            0.6 * static_cast<double>(all.bytes));  // rows do not change in half of the steps
  EXPECT_NE(read_while_training({.codec = RowCodec::kInt8}).bytes, all.bytes);
}

// Returns the largest error of the values read in each step. A filter delays nearly all changes, and both ranks flush
// them in step `step_of_all`. ahead: batches are announced one step ahead.
std::vector<double> errors_with_flush(int step_of_all, bool ahead) {
  std::mutex mutex;
  std::vector<double> off(8);
  run_ranks(Group::threads(2), [&](Group mine) {
    Store store(mine, {.threads = 1});
    auto const table =
        store.add_table({.name = "t",
                         .dim = kDim,
                         .optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 1},
                         .refresh_compression = {.filter = {.age_max = 1000, .density = 0, .threshold_max = 100}}});
    auto stream = store.make_stream();
    std::vector<Key> keys;
    for (std::uint64_t k = 0; k < kKeys; ++k) keys.push_back(Key{k});
    TableBatch const part{.table = table, .keys = View<Key const>(keys)};
    auto const prepare = [&](Clock step) { return store.prepare(stream, step, {&part, 1}, 1); };
    Matrix<float> rows(Device::host(), kKeys, kDim), truth(Device::host(), kKeys, kDim),
        sources(Device::host(), kKeys, kDim);
    MatrixView<float> const out = rows;
    std::optional<PreparedBatch> next;
    for (std::size_t s = 0; s < off.size(); ++s) {
      auto const batch = next ? *std::exchange(next, std::nullopt) : prepare(store.clock());
      store.wait_ready(batch);
      store.pull(stream, batch, {&out, 1});
      store.lookup(stream, table, batch.keys(0), truth, {});
      {
        std::lock_guard lock(mutex);
        for (std::size_t i = 0; i < kKeys; ++i) {
          double const is = rows.row(i)[0], should_be = truth.row(i)[0];
          off[s] = std::max(off[s], std::abs(is - should_be));
        }
      }
      store.wait_barrier();
      float const change = s == 0 ? 8 : 0.125F;  // the first change sets the threshold
      for (std::size_t i = 0; i < kKeys; ++i) std::fill(sources.row(i).begin(), sources.row(i).end(), change);
      TableGradients const gradients{.sources = sources};
      store.push(stream, batch, {&gradients, 1});
      if (ahead) next = prepare(store.clock() + 1);
      if (static_cast<int>(s) == step_of_all) store.flush_residuals();
      store.advance_clock();
      store.wait_applied();
    }
  });
  return off;
}

TEST(RefreshCompression, FlushSendsAllDelayedChanges) {
  constexpr int kStep = 3;
  for (bool const ahead : {false, true}) {
    auto const off = errors_with_flush(kStep, ahead);
    for (int s = 0; s < static_cast<int>(off.size()); ++s) {
      bool const is_right = s < 2 || s == kStep + 1;
      EXPECT_EQ(off[static_cast<std::size_t>(s)] == 0, is_right) << "step " << s << (ahead ? ", announced ahead" : "");
    }
  }
}

}  // namespace
}  // namespace gpups::test::value_filter_test
