// SPDX-License-Identifier: Apache-2.0
// Rows whose changes are sent to readers, when a run is saved: one that goes on has the bits of one that never stopped.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/temporary_folder.hpp"

namespace gpups::test {
namespace {

constexpr std::size_t kDim = 40, kRows = 30;  // with fewer columns rows share scales, by their order on the wire
constexpr int kRanks = 3, kSteps = 24, kSaved = 11;

struct Run {
  RowTransfer refreshes;
  int lookahead = 1;  // steps that batches are prepared ahead
  int parts = 1;      // of a batch, all of the same table
};

std::vector<Key> keys_of(std::int64_t step, int rank, int part) {
  std::mt19937_64 random(static_cast<std::uint64_t>(step * 100 + rank * 10 + part));
  std::vector<Key> keys;
  for (std::size_t i = 0; i < kRows; ++i) keys.push_back(Key{random() % 3 == 0 ? random() % 5 : random() % 90});
  return keys;
}

// Trains steps first .. end - 1 with gradients that depend on the rows which were read; saves before one of them.
std::uint64_t train(Run const& run, std::filesystem::path const& folder, int first, int end, int saved) {
  std::uint64_t hash = 0;
  run_ranks(Group::threads(kRanks), [&](Group const& group) {
    Store store(group, {.threads = 1});
    auto const table = store.add_table({.name = "t",
                                        .dim = kDim,
                                        .initializer = {Initializer::Kind::kUniform, 1},
                                        .optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 0.3F},
                                        .refreshes = run.refreshes});
    int const rank = static_cast<int>(number(group.rank()));
    auto stream = store.make_stream();
    if (first > 0) store.restore(folder);
    std::map<std::int64_t, Prepared> ahead;
    auto const prepare = [&](std::int64_t step) {
      if (step >= end || ahead.contains(step)) return;
      std::vector<std::vector<Key>> keys;
      std::vector<TableBatch> parts;
      for (int p = 0; p < run.parts; ++p) keys.push_back(keys_of(step, rank, p));
      for (auto const& of_part : keys) parts.push_back({.table = table, .keys = View<Key const>(of_part)});
      ahead[step] = store.prepare(stream, Clock{step}, parts, 1);
    };
    for (std::int64_t step = first; step < end; ++step) {
      for (int a = 0; a < run.lookahead; ++a) prepare(step + a);
      if (step == saved) store.save(folder, {});
      prepare(step);
      prepare(step + run.lookahead);
      auto const batch = ahead.at(step);
      store.wait_ready(batch);
      std::vector<Matrix<float>> rows, sources;
      std::vector<MatrixView<float>> out;
      std::vector<TableGradients> gradients;
      for (std::size_t p = 0; p < batch.parts(); ++p) {
        out.push_back(rows.emplace_back(Device::host(), batch.rows(p), kDim));
        sources.emplace_back(Device::host(), batch.entries(p), kDim);
      }
      store.pull(stream, batch, out);
      stream.wait();
      for (std::size_t p = 0; p < batch.parts(); ++p) {
        for (std::size_t e = 0; e < batch.entries(p); ++e) {
          auto const row = rows[p].row(batch.positions(p)[e]);
          for (std::size_t j = 0; j < kDim; ++j) sources[p].row(e)[j] = row[j] - 0.01F * static_cast<float>(e + j);
        }
        gradients.push_back({.sources = sources[p]});
      }
      store.push(stream, batch, gradients);
      store.advance_clock();
      store.wait_flush();
      ahead.erase(step);
    }
    auto const mine = store.table_hash();
    if (rank == 0) hash = mine;
  });
  return hash;
}

class SavedCopies : public testing::TestWithParam<Run> {};

TEST_P(SavedCopies, AResumedRunHasTheBitsOfOneThatNeverStopped) {
  TemporaryFolder const folder;
  auto const through = train(GetParam(), folder.path(), 0, kSteps, kSaved);
  EXPECT_EQ(train(GetParam(), folder.path(), kSaved, kSteps, -1), through);
  EXPECT_NE(train({}, folder.path(), 0, kSteps, -1), through) << "refreshes are lossy, or nothing is tested";
}

INSTANTIATE_TEST_SUITE_P(
    Refreshes, SavedCopies,
    testing::Values(Run{{.codec = RowCodec::kInt4}, 0}, Run{{.codec = RowCodec::kInt4}, 1},
                    Run{{.codec = RowCodec::kInt8, .filter = {.age_max = 4, .share = 0.3F}}, 2},
                    Run{{.filter = {.age_max = 5, .share = 0.2F}, .rows_max = 20}, 1},
                    Run{{.codec = RowCodec::kInt4, .filter = {.age_max = 3, .share = 0.5F}, .rows_max = 11}, 1, 2},
                    Run{{.codec = RowCodec::kBFloat16, .filter = {.age_max = 3, .share = 0.5F}}, 0, 2}));

}  // namespace
}  // namespace gpups::test
