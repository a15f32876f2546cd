// SPDX-License-Identifier: Apache-2.0
// Checkpoints of mirrors and residuals: a resumed run ends with the bits of a run that was not interrupted.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test::saved_mirrors_test {
namespace {

constexpr int kRanks = 3, kSteps = 24, kSaved = 11, kWindow = 4;

struct RunOptions {
  RowCompression refresh_compression{};
  int lookahead = 1;                   // steps that batches are prepared ahead
  int parts = 1;                       // of a batch, all of the same table
  std::size_t dim = 40, entries = 30;  // of a part
  RowCompression gradient_compression{};
  std::uint64_t spread = 1;  // keys are multiples of it; new keys are sent as gaps, or as 8 bytes if they are far apart
  std::size_t dictionary_keys = 1000;
  bool flushes = false;  // calls flush_residuals() in the step before the save
  PlacementPolicy policy = PlacementPolicy::kStatic;
};
constexpr std::uint64_t kFar = 0x9E3779B97F4A7C15;

std::vector<Key> keys_of(RunOptions const& run, std::int64_t step, int rank, int part) {
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
  Member(Group const& group, RunOptions const& run)
      : run_(run),
        rank_(static_cast<int>(number(group.rank()))),
        store_(group, {.threads = 1, .placement = run.policy, .placement_window = kWindow, .placement_bytes_min = 0}),
        table_(store_.add_table({.name = "t",
                                 .dim = run.dim,
                                 .initializer = {Initializer::Kind::kUniform, 1},
                                 .optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 0.3F},
                                 .gradient_compression = run.gradient_compression,
                                 .refresh_compression = run.refresh_compression,
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
    if (run_.flushes && step + 1 == kSaved) store_.flush_residuals();
    store_.advance_clock();
    store_.wait_applied();
    ahead_.erase(step);
  }

 private:
  // Returns the rows of each part.
  std::vector<Matrix<float>> pull(PreparedBatch const& batch) {
    std::vector<Matrix<float>> rows;
    for (std::size_t p = 0; p < batch.parts(); ++p) rows.emplace_back(Device::host(), batch.rows(p), run_.dim);
    store_.pull(stream_, batch, std::vector<MatrixView<float>>(rows.begin(), rows.end()));
    stream_.wait();
    return rows;
  }

  // Pushes gradients that depend on the rows read.
  void push(PreparedBatch const& batch, std::vector<Matrix<float>> const& rows) {
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
    stream_.wait();  // the sources are freed
  }

  RunOptions const run_;
  int rank_;
  Store store_;
  TableId table_;
  Stream stream_;
  std::map<std::int64_t, PreparedBatch> ahead_;
};

// Trains steps first .. end - 1, and saves before step `saved`. Returns the table hash.
std::uint64_t train(RunOptions const& run, std::filesystem::path const& folder, int first, int end, int saved) {
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

class SavedMirrors : public testing::TestWithParam<RunOptions> {};

TEST_P(SavedMirrors, ResumedRunEndsWithSameBits) {
  TemporaryFolder const folder;
  auto const& run = GetParam();
  auto const through = train(run, folder.path(), 0, kSteps, kSaved);
  EXPECT_EQ(train(run, folder.path(), kSaved, kSteps, -1), through);
  EXPECT_NE(train({.dim = run.dim, .entries = run.entries, .spread = run.spread}, folder.path(), 0, kSteps, -1),
            through)
      << "lossy rows must change the bits, else nothing is tested";
}

TEST_P(SavedMirrors, LookaheadAndDictionaryDoNotChangeBits) {
  auto run = GetParam();
  auto const bits = train(run, {}, 0, kSteps, -1);
  run.lookahead = run.lookahead == 0 ? 1 : 0;
  EXPECT_EQ(train(run, {}, 0, kSteps, -1), bits);
  run.dictionary_keys = 0;
  run.lookahead = 2;
  EXPECT_EQ(train(run, {}, 0, kSteps, -1), bits);
}

INSTANTIATE_TEST_SUITE_P(
    Refreshes, SavedMirrors,
    testing::Values(
        RunOptions{{.codec = RowCodec::kInt4}, 0}, RunOptions{{.codec = RowCodec::kInt4}, 1},
        RunOptions{{.codec = RowCodec::kInt8, .filter = {.age_max = 4, .density = 0.3F}}, 2},
        RunOptions{{.filter = {.age_max = 5, .density = 0.2F}, .capacity_rows = 20}, 1},
        RunOptions{{.codec = RowCodec::kInt4, .filter = {.age_max = 3, .density = 0.5F}, .capacity_rows = 11}, 1, 2},
        RunOptions{.refresh_compression = {.filter = {.age_max = 5, .density = 0.2F}}, .lookahead = 0, .flushes = true},
        RunOptions{.refresh_compression = {.filter = {.age_max = 5, .density = 0.2F}}, .lookahead = 2, .flushes = true},
        RunOptions{{.codec = RowCodec::kBFloat16, .filter = {.age_max = 3, .density = 0.5F}}, 0, 2}));

// Rows move, also in the step from which the run resumes, and in the one after it. A policy sees the same batches if
// all are prepared before the first step whose plan considers them.
class SavedMoves : public testing::TestWithParam<RunOptions> {};

TEST_P(SavedMoves, ResumedRunEndsWithSameBits) {
  TemporaryFolder const folder;
  auto run = GetParam();
  run.lookahead = kWindow + 2;
  std::set<std::uint64_t> bits;
  for (auto const policy : {PlacementPolicy::kAdaptive, PlacementPolicy::kRandom, PlacementPolicy::kRelocate}) {
    run.policy = policy;
    for (int const saved : {1, kSaved}) {
      auto const through = train(run, folder.path(), 0, kSteps, saved);
      EXPECT_EQ(train(run, folder.path(), saved, kSteps, -1), through) << saved << " " << static_cast<int>(policy);
      bits.insert(through);
    }
  }
  EXPECT_EQ(bits.size(), 3U) << "the policies must place rows differently, else nothing is tested";
}

// Short rows share scales. Which rows share one must not depend on the keys that ranks have sent before. Each part has
// more rows than share one scale.
constexpr RowCompression kInt8{.codec = RowCodec::kInt8}, kInt4{.codec = RowCodec::kInt4};
constexpr RowCompression kWaiting{
    .codec = RowCodec::kInt4, .filter = {.age_max = 3, .density = 0.3F}, .capacity_rows = 150};
constexpr RowCompression kLargest{.codec = RowCodec::kInt8, .top_k = 3};
INSTANTIATE_TEST_SUITE_P(
    ShortRows, SavedMirrors,
    testing::Values(
        RunOptions{.refresh_compression = kInt8, .dim = 5, .entries = 300},
        RunOptions{.refresh_compression = kInt4, .lookahead = 3, .dim = 20, .entries = 300},
        RunOptions{.refresh_compression = kInt4, .dim = 5, .entries = 300, .spread = kFar},
        RunOptions{
            .refresh_compression = kWaiting, .lookahead = 2, .parts = 2, .dim = 3, .entries = 300, .spread = kFar},
        RunOptions{.dim = 5, .entries = 300, .gradient_compression = kInt8},
        RunOptions{.lookahead = 3, .dim = 20, .entries = 300, .gradient_compression = kInt4},
        RunOptions{.dim = 5, .entries = 300, .gradient_compression = kInt4, .spread = kFar},
        RunOptions{.lookahead = 2, .entries = 300, .gradient_compression = kLargest},
        RunOptions{
            .lookahead = 2, .parts = 2, .dim = 3, .entries = 300, .gradient_compression = kWaiting, .spread = kFar},
        RunOptions{.refresh_compression = kWaiting,
                   .dim = 7,
                   .entries = 300,
                   .gradient_compression = kWaiting,
                   .dictionary_keys = 200}));

INSTANTIATE_TEST_SUITE_P(
    Gradients, SavedMoves,
    testing::Values(RunOptions{.gradient_compression = kInt8}, RunOptions{.gradient_compression = kLargest},
                    RunOptions{.gradient_compression = kWaiting},
                    RunOptions{.gradient_compression = kWaiting, .flushes = true},
                    RunOptions{.parts = 2, .dim = 3, .entries = 300, .gradient_compression = kInt4, .spread = kFar}));

}  // namespace
}  // namespace gpups::test::saved_mirrors_test
