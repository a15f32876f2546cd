// SPDX-License-Identifier: Apache-2.0
// Rows that are coded or wait on their way, when a run is saved: one that goes on has the bits of one that never
// stopped.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test {
namespace {

constexpr int kRanks = 3, kSteps = 24, kSaved = 11;

struct Run {
  RowTransfer refreshes{};
  int lookahead = 1;                   // steps that batches are prepared ahead
  int parts = 1;                       // of a batch, all of the same table
  std::size_t dim = 40, entries = 30;  // of a part
  RowTransfer gradients{};
  std::uint64_t spread = 1;  // keys are multiples of it; new ones travel as gaps, or whole where they are far apart
  std::size_t dictionary_keys = 1000;
  bool sends_held = false;  // with the step before it is saved
};
constexpr std::uint64_t kFar = 0x9E3779B97F4A7C15;

std::vector<Key> keys_of(Run const& run, std::int64_t step, int rank, int part) {
  std::mt19937_64 random(static_cast<std::uint64_t>(step * 100 + rank * 10 + part));
  std::vector<Key> keys;
  for (std::size_t i = 0; i < run.entries; ++i) {
    keys.push_back(Key{(random() % 3 == 0 ? random() % (run.entries / 6) : random() % (3 * run.entries)) * run.spread});
  }
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
                                 .dim = run.dim,
                                 .initializer = {Initializer::Kind::kUniform, 1},
                                 .optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 0.3F},
                                 .gradients = run.gradients,
                                 .refreshes = run.refreshes,
                                 .dictionary_keys = run.dictionary_keys})),
        stream_(store_.make_stream()) {}

  Store& store() { return store_; }

  void prepare(std::int64_t step) {
    std::vector<std::vector<Key>> keys;
    std::vector<TableBatch> parts;
    for (int p = 0; p < run_.parts; ++p) keys.push_back(keys_of(run_, step, rank_, p));
    for (auto const& of_part : keys) parts.push_back({.table = table_, .keys = View<Key const>(of_part)});
    ahead_[step] = store_.prepare(stream_, Clock{step}, parts, 1);
  }

  void step(std::int64_t step) {
    auto const batch = ahead_.at(step);
    store_.wait_ready(batch);
    push(batch, pull(batch));
    if (run_.sends_held && step + 1 == kSaved) store_.send_held_back();
    store_.advance_clock();
    store_.wait_flush();
    ahead_.erase(step);
  }

 private:
  // The rows of each part.
  std::vector<Matrix<float>> pull(Prepared const& batch) {
    std::vector<Matrix<float>> rows;
    for (std::size_t p = 0; p < batch.parts(); ++p) rows.emplace_back(Device::host(), batch.rows(p), run_.dim);
    store_.pull(stream_, batch, std::vector<MatrixView<float>>(rows.begin(), rows.end()));
    stream_.wait();
    return rows;
  }

  // Gradients that depend on the rows which were read.
  void push(Prepared const& batch, std::vector<Matrix<float>> const& rows) {
    std::vector<Matrix<float>> sources;
    for (std::size_t p = 0; p < batch.parts(); ++p) {
      auto& of_part = sources.emplace_back(Device::host(), batch.entries(p), run_.dim);
      for (std::size_t e = 0; e < batch.entries(p); ++e) {
        auto const row = rows[p].row(batch.positions(p)[e]);
        for (std::size_t j = 0; j < run_.dim; ++j) of_part.row(e)[j] = row[j] - 0.01F * static_cast<float>(e + j);
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
  auto const& run = GetParam();
  auto const through = train(run, folder.path(), 0, kSteps, kSaved);
  EXPECT_EQ(train(run, folder.path(), kSaved, kSteps, -1), through);
  EXPECT_NE(train({.dim = run.dim, .entries = run.entries, .spread = run.spread}, folder.path(), 0, kSteps, -1),
            through)
      << "rows are lossy, or nothing is tested";
}

TEST_P(SavedCopies, BitsAreThoseOfBatchesThatAreAnnouncedLateAndOfKeysThatHaveNoNumbers) {
  auto run = GetParam();
  auto const bits = train(run, {}, 0, kSteps, -1);
  run.lookahead = run.lookahead == 0 ? 1 : 0;
  EXPECT_EQ(train(run, {}, 0, kSteps, -1), bits);
  run.dictionary_keys = 0;
  run.lookahead = 2;
  EXPECT_EQ(train(run, {}, 0, kSteps, -1), bits);
}

INSTANTIATE_TEST_SUITE_P(
    Refreshes, SavedCopies,
    testing::Values(Run{{.codec = RowCodec::kInt4}, 0}, Run{{.codec = RowCodec::kInt4}, 1},
                    Run{{.codec = RowCodec::kInt8, .filter = {.age_max = 4, .share = 0.3F}}, 2},
                    Run{{.filter = {.age_max = 5, .share = 0.2F}, .rows_max = 20}, 1},
                    Run{{.codec = RowCodec::kInt4, .filter = {.age_max = 3, .share = 0.5F}, .rows_max = 11}, 1, 2},
                    Run{.refreshes = {.filter = {.age_max = 5, .share = 0.2F}}, .lookahead = 0, .sends_held = true},
                    Run{.refreshes = {.filter = {.age_max = 5, .share = 0.2F}}, .lookahead = 2, .sends_held = true},
                    Run{{.codec = RowCodec::kBFloat16, .filter = {.age_max = 3, .share = 0.5F}}, 0, 2}));

// Short rows share scales: which do must not depend on what the ranks have named to each other before. All that are
// named at a time are more than share one.
constexpr RowTransfer kInt8{.codec = RowCodec::kInt8}, kInt4{.codec = RowCodec::kInt4};
constexpr RowTransfer kWaiting{.codec = RowCodec::kInt4, .filter = {.age_max = 3, .share = 0.3F}, .rows_max = 150};
constexpr RowTransfer kLargest{.codec = RowCodec::kInt8, .top_k = 3};
INSTANTIATE_TEST_SUITE_P(
    ShortRows, SavedCopies,
    testing::Values(
        Run{.refreshes = kInt8, .dim = 5, .entries = 300},
        Run{.refreshes = kInt4, .lookahead = 3, .dim = 20, .entries = 300},
        Run{.refreshes = kInt4, .dim = 5, .entries = 300, .spread = kFar},
        Run{.refreshes = kWaiting, .lookahead = 2, .parts = 2, .dim = 3, .entries = 300, .spread = kFar},
        Run{.dim = 5, .entries = 300, .gradients = kInt8},
        Run{.lookahead = 3, .dim = 20, .entries = 300, .gradients = kInt4},
        Run{.dim = 5, .entries = 300, .gradients = kInt4, .spread = kFar},
        Run{.lookahead = 2, .entries = 300, .gradients = kLargest},
        Run{.lookahead = 2, .parts = 2, .dim = 3, .entries = 300, .gradients = kWaiting, .spread = kFar},
        Run{.refreshes = kWaiting, .dim = 7, .entries = 300, .gradients = kWaiting, .dictionary_keys = 200}));

}  // namespace
}  // namespace gpups::test
