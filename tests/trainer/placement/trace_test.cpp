// SPDX-License-Identifier: Apache-2.0
// A run records the keys of its batches, and a replay of them moves and sends the rows that the run did.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "cache/placement/replay.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/update/update_rows.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/trainer/run/train_fixture.hpp"
#include "trainer/placement/trace_reader.hpp"

namespace gpups::trainer::trace_test {
namespace {

namespace fs = std::filesystem;

struct ReplayedTotals {
  std::uint64_t keys = 0, remote = 0, moved = 0;
  bool operator==(ReplayedTotals const&) const = default;
};

ReplayedTotals replayed(PlacementTrace const& trace, PlacementPolicy policy) {
  auto const& about = trace.description;
  cache::PlacementReplay::ReplayOptions options{.policy = policy, .ranks = about.ranks, .lookahead = about.lookahead};
  for (auto const& table : about.tables) {
    auto const value = static_cast<std::int64_t>(table.dim * sizeof(float));
    auto const state = static_cast<std::int64_t>(kernels::state_columns(table.optimizer, table.dim) * sizeof(float));
    std::int64_t const lifecycle = kernels::kLifecycleWords * sizeof(std::uint32_t);
    options.tables.push_back(
        {{.read = value, .update = value, .move = value + state + lifecycle, .forward = sizeof(Key), .route = 1}});
  }
  cache::PlacementReplay replay(options);
  ReplayedTotals all;
  std::int64_t const steps = std::ssize(trace.steps);
  for (std::int64_t step = 0, announced = 0; step < steps; ++step) {
    for (; announced < std::min(steps, number(replay.announced_end())); ++announced) {
      auto const& batches = trace.steps[static_cast<std::size_t>(announced)];
      for (std::uint32_t rank = 0; rank < batches.size(); ++rank) {
        for (auto const& [table, keys] : batches[rank]) replay.announce(Rank{rank}, Clock{announced}, table, keys);
      }
    }
    auto const sent = replay.advance();
    all.keys += sent.keys, all.remote += sent.reads + sent.moves, all.moved += sent.moves;
  }
  return all;
}

class PlacementTraces : public TrainTest {
 protected:
  // With a look-ahead of the whole run, all batches are announced before the first step, so in time.
  nlohmann::json recorded(Settings more = {}, std::string const& name = "run", bool resume = false) {
    more.insert(more.begin(), {"train.steps=20", "train.lookahead=20", "train.prefetch_thread=false",
                               "placement.trace_steps=30", "run.ranks=4"});
    return run(name, more, resume);
  }
  fs::path traces() const { return folder_.path() / "run" / "placement_trace"; }
  PlacementTrace read() const { return read_placement_trace(folder_.path() / "run"); }

  // Changes a byte of a rank's file, counted from its end.
  void damage(int rank, std::uintmax_t from_end) const {
    auto const path = trace_file(traces(), rank);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    auto const place = static_cast<std::streamoff>(fs::file_size(path) - from_end);
    file.seekg(place);
    auto const changed = static_cast<char>(file.get() ^ 1);
    file.seekp(place);
    file.put(changed);
  }
  void cut(int rank, std::uintmax_t bytes) const {
    auto const path = trace_file(traces(), rank);
    fs::resize_file(path, fs::file_size(path) - bytes);
  }
};

TEST_F(PlacementTraces, ReplayMovesTheRowsOfTheRun) {
  for (std::string const policy : {"adaptive", "relocate", "static"}) {
    auto const summary = recorded({"placement.policy=" + policy}, policy);
    auto const trace = read_placement_trace(folder_.path() / policy);
    ASSERT_EQ(trace.steps.size(), 20U);
    ReplayedTotals const run{summary.at("distinct_keys"), summary.at("remote_keys"), summary.at("moved_rows")};
    EXPECT_EQ(replayed(trace, placement_policy(policy)), run) << policy;
    EXPECT_EQ(run.moved > 0, policy != "static");
    EXPECT_GT(run.remote, run.moved);
  }
}

TEST_F(PlacementTraces, DescribeTheRun) {
  recorded({"model.dim=8", "model.value_type=bfloat16", "optimizer.kind=adam", "placement.trace_steps=5",
            "placement.staleness=3"});
  auto const trace = read();
  EXPECT_EQ(trace.steps.size(), 5U);
  auto const& about = trace.description;
  EXPECT_EQ(about.ranks, 4);
  EXPECT_EQ(about.first_step, 0);
  EXPECT_EQ(about.lookahead, 20);
  EXPECT_EQ(about.staleness, 3);
  EXPECT_EQ(about.batch_size, 64);
  ASSERT_EQ(about.tables.size(), 2U);
  EXPECT_EQ(about.tables[0].dim, 8U);
  EXPECT_EQ(about.tables[0].value_type, DataType::kBFloat16);
  EXPECT_EQ(about.tables[0].optimizer.kind, Optimizer::Kind::kAdam);
  EXPECT_EQ(about.bytes_min, 0);
  EXPECT_EQ(about.ranks_of_host, 4);
}

TEST_F(PlacementTraces, DescribeCompression) {
  recorded({"placement.policy=adaptive", "gradient_compression.codec=int8", "refresh_compression.age_max=9"});
  auto const moving = read().description;
  EXPECT_EQ(moving.tables[0].gradient_compression.codec, RowCodec::kInt8);
  EXPECT_EQ(moving.tables[0].refresh_compression.filter.age_max, 9U);
}

TEST_F(PlacementTraces, DescribeWhereRowsMove) {
  recorded({"placement.bytes_min=1000", "placement.ranks_per_host=2"});
  auto const about = read().description;
  EXPECT_EQ(about.bytes_min, 1000);
  EXPECT_EQ(about.ranks_of_host, 2);
}

// A run whose rows stay prepares fewer steps. Its trace can be replayed as if they moved.
TEST_F(PlacementTraces, OfStaticRunsHaveTheLookaheadOfRowsThatMove) {
  for (std::string const policy : {"static", "adaptive"}) {
    run(policy, {"train.steps=3", "placement.trace_steps=3", "run.ranks=2", "placement.policy=" + policy});
    auto const about = read_placement_trace(folder_.path() / policy).description;
    EXPECT_EQ(about.lookahead, 20);
    EXPECT_EQ(about.window, 16);
  }
}

TEST_F(PlacementTraces, BeginAgainAfterAResume) {
  recorded({"train.steps=7"});
  recorded({"train.steps=12", "run.ranks=3"}, "run", true);
  EXPECT_EQ(read().description.first_step, 7);
  EXPECT_EQ(read().steps.size(), 5U);
  EXPECT_FALSE(fs::exists(trace_file(traces(), 3))) << "a file of the run before";
}

TEST_F(PlacementTraces, HaveAscendingKeys) {
  recorded({"train.steps=1"});
  auto const trace = read();
  for (auto const& batch : trace.steps[0]) {
    EXPECT_EQ(batch.size(), 2U);
    for (auto const& part : batch) {
      EXPECT_TRUE(std::is_sorted(part.keys.begin(), part.keys.end()));
      EXPECT_EQ(std::adjacent_find(part.keys.begin(), part.keys.end()), part.keys.end());
    }
  }
}

TEST_F(PlacementTraces, ThatWereCutAreRejected) {
  recorded();
  cut(2, 1);  // within the end
  test::expect_error([&] { read(); }, {"rank-2.trace", "ends after 20 whole steps", "killed", "cut"});
  cut(2, sizeof(TraceRecord) - 1);  // before the end
  test::expect_error([&] { read(); }, {"rank-2.trace", "ends after 20 whole steps"});
  cut(2, 1);  // within the last step
  test::expect_error([&] { read(); }, {"rank-2.trace", "ends after 19 whole steps"});
  cut(2, fs::file_size(trace_file(traces(), 2)) - 200);  // within the description
  test::expect_error([&] { read(); }, {"rank-2.trace", "description"});
}

TEST_F(PlacementTraces, HaveTheStepsOfAllRanks) {  // a rank of a run that was stopped may have prepared more
  recorded();
  recorded({"train.steps=19"}, "short");
  fs::copy_file(trace_file(folder_.path() / "short" / "placement_trace", 1), trace_file(traces(), 1),
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(read().steps.size(), 19U);
}

TEST_F(PlacementTraces, ThatAreNoFilesAreRejected) {
  recorded({"train.steps=1"});
  fs::remove(trace_file(traces(), 1));
  ASSERT_EQ(::mkfifo(trace_file(traces(), 1).c_str(), 0600), 0);
  test::expect_error([&] { read(); }, {"rank-1.trace", "regular file"});
}

TEST_F(PlacementTraces, ThatWereChangedAreRejected) {
  recorded();
  for (int times = 0; times < 2; ++times) {  // the last byte of the keys, then of the end
    std::uintmax_t const place = times == 0 ? sizeof(TraceRecord) + 1 : 1;
    damage(1, place);
    test::expect_error([&] { read(); }, {"rank-1.trace", times == 0 ? "keys of step 19" : "record of step 20"});
    damage(1, place);
  }
  EXPECT_EQ(read().steps.size(), 20U);
  damage(1, fs::file_size(trace_file(traces(), 1)));
  test::expect_error([&] { read(); }, {"rank-1.trace", "not a trace"});
  fs::remove(trace_file(traces(), 3));
  damage(1, fs::file_size(trace_file(traces(), 1)));
  test::expect_error([&] { read(); }, {"rank-3.trace", "cannot be read"});
}

TEST_F(PlacementTraces, WhoseRecordsWereChangedAreRejected) {
  recorded({"train.steps=1"});
  auto const parts = read().steps[0][0];
  std::string bytes;
  for (auto const& part : parts) encode_traced_part(part, bytes);
  damage(0,
         bytes.size() + 2 * sizeof(TraceRecord) - 8);  // the number of bytes, which would look like a file that was cut
  test::expect_error([&] { read(); }, {"rank-0.trace", "record of step 0", "damaged"});
}

TEST_F(PlacementTraces, OfDifferentRunsAreRejected) {
  recorded();
  recorded({"train.lookahead=19"}, "other");
  fs::copy_file(trace_file(folder_.path() / "other" / "placement_trace", 1), trace_file(traces(), 1),
                fs::copy_options::overwrite_existing);
  test::expect_error([&] { read(); }, {"rank-0.trace", "rank-1.trace", "different runs"});
}

TEST_F(PlacementTraces, OfAnotherRankAreRejected) {
  recorded();
  fs::copy_file(trace_file(traces(), 1), trace_file(traces(), 2), fs::copy_options::overwrite_existing);
  test::expect_error([&] { read(); }, {"rank-2.trace", "keys of rank 1", "copied"});
}

TEST(TraceFormat, HasAnyKey) {
  std::string bytes;
  TracedPart const part{1, {Key{0}, Key{127}, Key{300}, Key{~std::uint64_t{0}}}};
  encode_traced_part(part, bytes);
  encode_traced_part({0, {}}, bytes);
  auto const parts = decode_traced_parts(bytes, 2);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].table, 1U);
  EXPECT_EQ(parts[0].keys, part.keys);
  EXPECT_TRUE(parts[1].keys.empty());
  test::expect_error([&] { decode_traced_parts(bytes, 1); }, {"table 1 of 1"});
  test::expect_error([&] { decode_traced_parts(std::string(11, '\xFF'), 2); }, {"has no end"});
  test::expect_error([&] { TraceDescription::from_json("{}"); }, {"description is not valid"});
  auto text = TraceDescription{.ranks = 1}.to_json();
  text[text.find("home_hash") + 13] ^= 1;
  test::expect_error([&] { TraceDescription::from_json(text); }, {"another hash of keys"});
}

}  // namespace
}  // namespace gpups::trainer::trace_test
