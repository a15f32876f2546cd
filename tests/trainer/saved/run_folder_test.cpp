// SPDX-License-Identifier: Apache-2.0
// The files of a run, and runs that cannot be resumed.
#include "trainer/saved/run_folder.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trainer/accounts/metrics.hpp"
#include "trainer/saved/run_folder_lock.hpp"
#include "trainer/saved/trainer_state.hpp"
#include "trainer/tasks/graph/ranking.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer::run_folder_test {
namespace {

using test::expect_error;
using test::TemporaryFolder;

std::string text_of(std::filesystem::path const& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST(RunFolder, WritesConfigMetricsAndSummary) {
  TemporaryFolder const outer;
  RunFolder folder(outer.path() / "a" / "b");
  folder.write_config("x = 1\n");
  folder.add_metrics({{"step", 1}});
  folder.add_metrics({{"step", 2}});
  folder.write_summary({{"steps", 2}});
  EXPECT_EQ(text_of(folder.path() / "config.toml"), std::string(kConfigMark) + "x = 1\n");
  EXPECT_EQ(text_of(folder.path() / "metrics.jsonl"), "{\"step\":1}\n{\"step\":2}\n");
  EXPECT_EQ(nlohmann::json::parse(text_of(folder.path() / "summary.json")), nlohmann::json({{"steps", 2}}));
  std::filesystem::create_directories(folder.path() / "checkpoint" / "step-1");  // an incomplete checkpoint
  EXPECT_FALSE(is_checkpoint(folder.path() / kLastCheckpoint));
  RunFolder again(folder.path());
  again.add_metrics({{"step", 3}});
  EXPECT_EQ(text_of(folder.path() / "metrics.jsonl"), "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n");
}

TEST(RunFolder, IncompleteLineOfTheRunBeforeIsRemoved) {
  for (std::string const before : {"{\"step\":1}\n", ""}) {
    TemporaryFolder const outer;
    outer.write("run/metrics.jsonl", before + "{\"step\":2,\"lo");
    RunFolder folder(outer.path() / "run");
    folder.add_metrics({{"step", 2}});
    EXPECT_EQ(text_of(folder.path() / "metrics.jsonl"), before + "{\"step\":2}\n");
  }
}

TEST(RunFolder, ReportsRemovedOrReplacedFolder) {
  TemporaryFolder const outer;
  RunFolder folder(outer.path() / "run");
  folder.add_metrics({{"step", 1}});
  EXPECT_NO_THROW(folder.require_there());
  std::filesystem::rename(folder.path(), outer.path() / "elsewhere");
  for (int replaced = 0; replaced < 2; ++replaced) {
    expect_error([&] { folder.require_there(); }, {"/run was removed", "would be lost"});
    expect_error([&] { folder.add_metrics({{"step", 2}}); }, {"/run was removed"});
    expect_error([&] { folder.write_summary({{"steps", 2}}); }, {"/run was removed"});
    EXPECT_EQ(text_of(outer.path() / "elsewhere" / "metrics.jsonl"), "{\"step\":1}\n");
    outer.write("run/metrics.jsonl", "");
  }
}

TEST(RunFolder, FailedConfigWriteLeavesNoFiles) {
  TemporaryFolder const outer;
  std::filesystem::create_directories(outer.path() / "run" / "config.toml" / "in the way");
  RunFolder folder(outer.path() / "run");
  expect_error([&] { folder.write_config("x = 1\n"); }, {"config.toml cannot be written"});
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "metrics.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "config.toml.new"));
  outer.write("kept/metrics.jsonl", "{}\n");
  std::filesystem::create_directories(outer.path() / "kept" / "config.toml" / "in the way");
  RunFolder kept(outer.path() / "kept");
  expect_error([&] { kept.write_config("x = 1\n"); }, {"config.toml cannot be written"});
  EXPECT_EQ(text_of(kept.path() / "metrics.jsonl"), "{}\n");
}

TEST(RunFolder, RejectsCheckpointFilesWithoutManifest) {
  TemporaryFolder const outer;
  EXPECT_NO_THROW(reject_checkpoint_without_manifest(outer.path()));
  std::filesystem::create_directories(outer.path() / "checkpoint");
  EXPECT_NO_THROW(reject_checkpoint_without_manifest(outer.path()));
  std::filesystem::create_directories(outer.path() / "checkpoint" / "step-1");
  expect_error([&] { reject_checkpoint_without_manifest(outer.path()); },
               {"checkpoint/step-1 contains files", "no manifest.json", "move", "to start a new run"});
  outer.write("checkpoint/manifest.json", "{}");
  EXPECT_NO_THROW(reject_checkpoint_without_manifest(outer.path()));
}

TEST(RunFolder, RejectsFileInPlaceOfFolder) {
  TemporaryFolder const outer;
  expect_error([&] { RunFolder(outer.write("file", "")); }, {"/file cannot be", "run.folder"});
  expect_error([&] { RunFolder(outer.path() / "file" / "below"); }, {"file/below cannot be created"});
  std::filesystem::create_directories(outer.path() / "taken" / "metrics.jsonl");
  expect_error([&] { RunFolder(outer.path() / "taken"); }, {"taken cannot be written to", "directory"});
}

TrainerState some_state() {
  return {.clock = 7,
          .ranks = 3,
          .microbatches = 8,
          .schedule_steps = 70,
          .data_digest = 0xFEDCBA9876543210U,
          .best = {.quality = 0.1234567890123,
                   .validations_since = 2,
                   .step = 1000,
                   .kept_quality = 0.12,
                   .summary = {{"step", 1000}},
                   .test_text = "mrr .5",
                   .validations = 3,
                   .any_differs = true},
          .progressive = {{"auc", 0.5}},
          .train_seconds = 3.5,
          .samples = 7168,
          .loss = 0.25};
}

TEST(TrainerState, RoundTripsThroughCheckpoint) {
  Config const config = parse_config("[model]\ndim = 12\n", "x", "/data");
  SavedState const saved = from_blobs(to_blobs(config, some_state()), "f", task_kinds());
  EXPECT_EQ(saved.state, some_state());
  EXPECT_EQ(resolved(saved.config), resolved(config));
}

TEST(TrainerState, RejectsCheckpointsOfOtherPrograms) {
  Config const config = parse_config("", "x", "/data");
  expect_error([] { from_blobs({}, "/some/folder", task_kinds()); }, {"/some/folder", "gpu_train did not write it"});
  auto blobs = to_blobs(config, some_state());
  blobs[1].bytes = "{\"clock\": 1}";
  expect_error([&] { from_blobs(blobs, "f", task_kinds()); },
               {"the trainer state of the checkpoint in f cannot be read"});
  blobs[1].bytes = "[";
  expect_error([&] { from_blobs(blobs, "f", task_kinds()); },
               {"the trainer state of the checkpoint in f cannot be read"});
}

TEST(TrainerState, RejectsDifferentRun) {
  Config const then = parse_config("", "x", "/data");
  SavedState const saved{then, some_state()};
  std::uint64_t const digest = some_state().data_digest;
  auto const now = [&](std::string const& setting) { return parse_config("", "x", "/data", {setting}); };
  for (char const* harmless : {"train.epochs=50", "run.ranks=3", "train.lookahead=9", "train.microbatches=8"}) {
    EXPECT_NO_THROW(require_same_run(saved, now(harmless), digest, "f")) << harmless;
  }
  expect_error([&] { require_same_run(saved, now("model.dim=50"), digest, "f"); },
               {"model.dim = 100", "the configuration sets 50"});
  expect_error([&] { require_same_run(saved, now("optimizer.learning_rate=0.5"), digest, "f"); },
               {"optimizer.learning_rate = 0.1", "0.5"});
  expect_error([&] { require_same_run(saved, now("train.microbatches=9"), digest, "f"); },
               {"train.microbatches = 8", "the configuration sets 9"});
  expect_error([&] { require_same_run(saved, then, digest + 1, "f"); }, {"other data", "fedcba9876543210"});
}

TEST(Metrics, LossAndSpeedAreMeans) {
  IntervalStats const p{.loss = 3 * (std::int64_t{1} << 29), .samples = 3, .seconds = 0.5};
  EXPECT_EQ(p.loss_mean(), 0.5);
  EXPECT_EQ(p.samples_per_s(), 6);
  EXPECT_EQ(IntervalStats{}.loss_mean(), 0);
  EXPECT_EQ(IntervalStats{}.samples_per_s(), 0);
}

TEST(Metrics, AreWrittenByName) {
  RankingMetrics const m{
      .ranked = 4, .triples = 3, .unseen = 1, .mrr = 0.5, .mean_rank = 3, .hits = {{1, 0.25}, {10, 1}}};
  EXPECT_EQ(to_json(m).dump(),
            R"({"hits@1":0.25,"hits@10":1.0,"mean_rank":3.0,"mrr":0.5,"ranked":4,"triples":3,"unseen":1})");
  EXPECT_EQ(to_text(m), "mrr 0.5000  hits@1 0.2500  hits@10 1.0000  (2 of 3 triples)");
  Traffic traffic;
  traffic.gradients = 7;
  EXPECT_EQ(to_json(traffic).at("gradients"), 7);
  EXPECT_GT(peak_memory(Device::host()).at("process").get<std::int64_t>(), 1 << 20);
}

}  // namespace
}  // namespace gpups::trainer::run_folder_test
