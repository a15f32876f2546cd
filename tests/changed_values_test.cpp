// SPDX-License-Identifier: Apache-2.0
// Values that travel as changes: what readers see of rows that a codec rounds and a filter holds back.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "gpups/gpups.hpp"

namespace gpups::test {
namespace {

constexpr std::size_t kDim = 40, kKeys = 30;

struct Seen {
  double off_most = 0, off_last = 0;  // largest differences to the rows' values, in all steps and in the last
  std::uint64_t bytes = 0;            // of refreshes
  std::uint64_t hash = 0;
};

// Rank 1 reads rows that both ranks change in the first half of the steps, each step by 1 / 8 at most.
Seen read_while_training(RowTransfer const& refreshes, int steps = 40) {
  Seen seen;
  std::mutex mutex;
  run_ranks(Group::threads(2), [&](Group mine) {
    Store store(mine, {.threads = 1});
    store.add_table({.name = "t",
                     .dim = kDim,
                     .initializer = {Initializer::Kind::kNormal, 0.5F},
                     .optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 1},
                     .refreshes = refreshes});
    auto stream = store.make_stream();
    std::vector<Key> keys;
    for (std::uint64_t k = 0; k < kKeys; ++k) keys.push_back(Key{k});
    TableBatch const part{.table = TableId{0}, .keys = View<Key const>(keys)};
    for (int s = 0; s < steps; ++s) {
      auto const batch = store.prepare(stream, store.clock(), {&part, 1}, 1);
      store.wait_ready(batch);
      Matrix<float> rows(Device::host(), kKeys, kDim), truth(Device::host(), kKeys, kDim),
          sources(Device::host(), kKeys, kDim);
      MatrixView<float> const out = rows;
      store.pull(stream, batch, {&out, 1});
      store.lookup(stream, TableId{0}, batch.keys(0), truth, {});
      double off = 0;
      for (std::size_t i = 0; i < kKeys; ++i) {
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
      store.wait_flush();
      std::lock_guard lock(mutex);
      seen.off_most = std::max(seen.off_most, off);
      if (number(mine.rank()) == 1) seen.off_last = off;
    }
    auto const hash = store.table_hash();
    auto const sent = store.stats().sent;
    std::lock_guard lock(mutex);
    seen.hash = hash;
    seen.bytes += sent.refreshes + sent.urgent;
  });
  return seen;
}

TEST(ChangedValues, WhatACodecRoundsOffIsInTheNextChange) {
  for (auto const codec : {RowCodec::kHalf, RowCodec::kBFloat16, RowCodec::kInt8, RowCodec::kInt4}) {
    auto const seen = read_while_training({.codec = codec});
    EXPECT_GT(seen.off_most, 0) << static_cast<int>(codec);
    EXPECT_LT(seen.off_most, 0.1) << static_cast<int>(codec);
    EXPECT_LT(seen.off_last, 1e-6) << static_cast<int>(codec);  // rows have rested
  }
}

TEST(ChangedValues, AFilterHoldsBackNoMoreThanItsBoundNorLongerThanItMay) {
  auto const seen = read_while_training({.filter = {.age_max = 4, .share = 0, .bound = 1}});
  EXPECT_GT(seen.off_most, 0.1);
  EXPECT_LT(seen.off_most, 4 * 0.125 + 0.01);  // of as many steps
  EXPECT_EQ(seen.off_last, 0);
}

TEST(ChangedValues, LosslessChangesAreTheBitsOfAllRows) {
  auto const all = read_while_training({});
  auto const changed = read_while_training({.filter = {.age_max = 1, .bound = 0}});
  EXPECT_EQ(changed.off_most, 0);
  EXPECT_EQ(changed.hash, all.hash);
  EXPECT_LT(static_cast<double>(changed.bytes), 0.6 * static_cast<double>(all.bytes));  // rows rest half of the time
  EXPECT_NE(read_while_training({.codec = RowCodec::kInt8}).bytes, all.bytes);
}

}  // namespace
}  // namespace gpups::test
