// SPDX-License-Identifier: Apache-2.0
// Rows whose changes are sent to readers, when a run is saved: one that goes on has the bits of one that never stopped.
#include <gtest/gtest.h>

#include <algorithm>
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

// One rank's part of a run: its store, and the batches that it has prepared.
class Member {
 public:
  Member(Group const& group, Run const& run)
      : run_(run),
        rank_(static_cast<int>(number(group.rank()))),
        store_(group, {.threads = 1}),
        table_(store_.add_table({.name = "t",
                                 .dim = kDim,
                                 .initializer = {Initializer::Kind::kUniform, 1},
                                 .optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 0.3F},
                                 .refreshes = run.refreshes})),
        stream_(store_.make_stream()) {}

  Store& store() { return store_; }

  void prepare(std::int64_t step) {
    std::vector<std::vector<Key>> keys;
    std::vector<TableBatch> parts;
    for (int p = 0; p < run_.parts; ++p) keys.push_back(keys_of(step, rank_, p));
    for (auto const& of_part : keys) parts.push_back({.table = table_, .keys = View<Key const>(of_part)});
    ahead_[step] = store_.prepare(stream_, Clock{step}, parts, 1);
  }

  void step(std::int64_t step) {
    auto const batch = ahead_.at(step);
    store_.wait_ready(batch);
    push(batch, pull(batch));
    store_.advance_clock();
    store_.wait_flush();
    ahead_.erase(step);
  }

 private:
  // The rows of each part.
  std::vector<Matrix<float>> pull(Prepared const& batch) {
    std::vector<Matrix<float>> rows;
    for (std::size_t p = 0; p < batch.parts(); ++p) rows.emplace_back(Device::host(), batch.rows(p), kDim);
    store_.pull(stream_, batch, std::vector<MatrixView<float>>(rows.begin(), rows.end()));
    stream_.wait();
    return rows;
  }

  // Gradients that depend on the rows which were read.
  void push(Prepared const& batch, std::vector<Matrix<float>> const& rows) {
    std::vector<Matrix<float>> sources;
    for (std::size_t p = 0; p < batch.parts(); ++p) {
      auto& of_part = sources.emplace_back(Device::host(), batch.entries(p), kDim);
      for (std::size_t e = 0; e < batch.entries(p); ++e) {
        auto const row = rows[p].row(batch.positions(p)[e]);
        for (std::size_t j = 0; j < kDim; ++j) of_part.row(e)[j] = row[j] - 0.01F * static_cast<float>(e + j);
      }
    }
    std::vector<TableGradients> gradients;
    for (auto const& of_part : sources) gradients.push_back({.sources = of_part});
    store_.push(stream_, batch, gradients);
    stream_.wait();  // they go
  }

  Run const run_;
  int rank_;
  Store store_;
  TableId table_;
  Stream stream_;
  std::map<std::int64_t, Prepared> ahead_;
};

// Trains steps first .. end - 1; saves before one of them. Returns the hash of all tables.
std::uint64_t train(Run const& run, std::filesystem::path const& folder, int first, int end, int saved) {
  std::uint64_t hash = 0;
  run_ranks(Group::threads(kRanks), [&](Group const& group) {
    Member member(group, run);
    if (first > 0) member.store().restore(folder);
    int next = first;  // to prepare
    for (int step = first; step < end; ++step) {
      while (next < std::min(end, step + run.lookahead)) member.prepare(next++);
      if (step == saved) member.store().save(folder, {});
      while (next < std::min(end, step + run.lookahead + 1)) member.prepare(next++);
      member.step(step);
    }
    auto const mine = member.store().table_hash();
    if (group.rank() == Rank{0}) hash = mine;
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
