// SPDX-License-Identifier: Apache-2.0
// Runs on a graph: they learn, give the same bits on any number of ranks and threads, and can be resumed.
#include "trainer/run/train.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/run/train_fixture.hpp"
#include "trainer/base/stop_signals.hpp"
#include "trainer/run/saved_run.hpp"
#include "trainer/tasks/graph/dataset.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer::train_test {
namespace {

using test::expect_error;

TEST_F(TrainTest, Learns) {
  auto const summary = run("run", {"train.epochs=60", "run.report_every=7", "train.validate_every=60"});
  auto const reports = lines("run", "loss");
  EXPECT_LT(summary.at("loss").get<double>(), reports.front().at("loss").get<double>() / 2);
  EXPECT_GT(summary.at("valid").at("mrr").get<double>(), 0.15);  // by chance: 0.045
  EXPECT_GT(summary.at("test").at("mrr").get<double>(), 0.15);
  EXPECT_EQ(summary.at("steps"), 60 * 7);
  EXPECT_EQ(summary.at("samples"), 60 * 420);
  EXPECT_EQ(summary.at("finished"), true);
}

// This also holds in lines of metrics, although ranks do not wait for each other there.
TEST_F(TrainTest, ReceivedBytesEqualSentBytes) {
  for (int const ranks : {2, 4}) {
    auto const name = fmt::format("on {}", ranks);
    std::vector<nlohmann::json> report{run(name, {fmt::format("run.ranks={}", ranks), "run.report_every=2"})};
    auto const reports = lines(name, "sent");
    EXPECT_GT(reports.size(), 9U);
    report.insert(report.end(), reports.begin(), reports.end());
    for (auto const& one : report) {
      std::uint64_t sent = 0, received = 0;
      for (auto const& [kind, number] : one.at("sent").items()) {
        if (kind != "messages") sent += number.get<std::uint64_t>();
      }
      for (auto const& bytes : one.at("received")) received += bytes.get<std::uint64_t>();
      EXPECT_GT(sent, 0U);
      EXPECT_EQ(sent, received) << ranks << " ranks";
    }
  }
}

// Expects that the bytes of all pairs of ranks add up to the bytes that all ranks have sent, for each kind.
void expect_pairs_add_up(nlohmann::json const& report, std::size_t ranks) {
  auto left = report.at("sent");
  std::vector<std::uint64_t> received(ranks);
  std::set<std::pair<int, int>> pairs;
  for (auto const& pair : report.at("pairs")) {
    int const from = pair.at("from"), to = pair.at("to");
    EXPECT_NE(from, to);
    EXPECT_TRUE(pairs.emplace(from, to).second);
    for (auto const& [kind, bytes] : pair.at("bytes").items()) {
      left[kind] = left.at(kind).get<std::uint64_t>() - bytes.get<std::uint64_t>();
      received.at(static_cast<std::size_t>(to)) += bytes.get<std::uint64_t>();
      EXPECT_GT(pair.at("messages").at(kind), 0) << kind;
    }
    for (auto const& [kind, count] : pair.at("messages").items()) {
      left["messages"] = left.at("messages").get<std::uint64_t>() - count.get<std::uint64_t>();
    }
  }
  EXPECT_EQ(pairs.size(), ranks * (ranks - 1));
  for (auto const& [kind, number] : left.items()) EXPECT_EQ(number, 0) << kind;
  EXPECT_EQ(report.at("received"), nlohmann::json(received));
}

// Expects that the total compression ratio is the mean of the ratios of the kinds, weighted by their bytes.
void expect_compression_adds_up(nlohmann::json const& report) {
  double sent = 0, plain = 0;
  for (auto const& [kind, ratio] : report.at("compression_ratio_by_kind").items()) {
    auto const bytes = report.at("sent").at(kind).get<double>(),
               saved_bytes = report.at("saved_bytes").at(kind).get<double>();
    EXPECT_GT(bytes, 0) << kind;
    EXPECT_DOUBLE_EQ(ratio.get<double>(), (bytes + saved_bytes) / bytes) << kind;
    sent += bytes;
    plain += bytes * ratio.get<double>();
  }
  EXPECT_DOUBLE_EQ(report.at("compression_ratio").get<double>(), plain / sent);
  EXPECT_GT(plain, sent);
}

TEST_F(TrainTest, ReportsBytesOfEachPairOfRanks) {
  constexpr std::size_t kRanks = 3;
  auto const summary = run("run", {fmt::format("run.ranks={}", kRanks), "train.steps=5", "run.report_every=2"});
  auto report = lines("run", "loss");
  EXPECT_EQ(report.size(), 3U);
  report.push_back(summary);
  auto before = nlohmann::json::object();
  for (auto const& one : report) {
    expect_pairs_add_up(one, kRanks);
    expect_compression_adds_up(one);
    for (auto const& [kind, number] : one.at("sent").items())
      EXPECT_GE(number, before.value(kind, std::uint64_t{0})) << kind;
    before = one.at("sent");
    EXPECT_GT(before.at("gradients"), 0);
  }
}

TEST_F(TrainTest, ReportsSecondsOfRounds) {
  auto report = std::vector<nlohmann::json>{run("run", {"run.ranks=2", "run.report_every=1", "train.steps=20"})};
  for (auto& line : lines("run", "round_seconds")) report.insert(report.end() - 1, std::move(line));
  EXPECT_EQ(report.size(), 21U);
  for (char const* const phase : {"gradients", "update", "refreshes", "waiting"}) {
    double before = 0;
    for (auto const& one : report) {
      double const seconds = one.at("round_seconds").at(phase);
      EXPECT_GE(seconds, before) << phase;
      before = seconds;
    }
    EXPECT_GT(before, 0) << phase;
  }
}

TEST_F(TrainTest, ReportsNoAllreducesWithoutDenseLayers) {
  EXPECT_FALSE(run("run", {"run.ranks=2", "train.steps=2"}).contains("allreduces"));
}

TEST_F(TrainTest, BitsAreIndependentOfRanksAndThreads) {
  auto const alone = result(run("alone", {}));
  EXPECT_EQ(result(run("ranks2", {"run.ranks=2"})), alone);
  EXPECT_EQ(result(run("ranks3", {"run.ranks=3"})), alone);
  EXPECT_EQ(result(run("ranks8", {"run.ranks=8"})), alone);
  EXPECT_EQ(result(run("threads", {"run.threads=2"})), alone);
  EXPECT_EQ(result(run("ahead", {"train.lookahead=1"})), alone);
  EXPECT_EQ(result(run("inline", {"train.prefetch_thread=false", "run.ranks=2"})), alone);
}

TEST_F(TrainTest, LearnsMatrixRelations) {
  Settings settings{"model.name=rescal",     "model.dim=8",      "model.loss=softmax",
                    "model.n3=0.05",         "train.epochs=100", "train.validate_every=100",
                    "model.negative_reuse=1"};
  auto const alone = run("alone", settings);
  EXPECT_GT(alone.at("valid").at("mrr").get<double>(), 0.3);
  EXPECT_GT(alone.at("test").at("mrr").get<double>(), 0.3);
  settings.emplace_back("run.ranks=3");
  EXPECT_EQ(result(run("ranks3", settings)), result(alone));
}

// The relations of the circle are rotations. Translations cannot represent them, but are better than chance (0.045).
TEST_F(TrainTest, LearnsWithDistanceModels) {
  Settings const usual{"train.epochs=60", "train.validate_every=60"};
  std::string const softmax = "model.loss=softmax", adversarial = "model.loss=self_adversarial";
  for (auto const& [settings, least] : {std::pair{Settings{softmax, "model.name=rotate"}, 0.9},
                                        {Settings{softmax, "model.name=rotate", "model.sampling=shared"}, 0.3},
                                        {Settings{adversarial, "model.name=rotate", "model.margin=3"}, 0.95},
                                        {Settings{softmax, "model.name=transe", "model.init_scale=0.03"}, 0.07}}) {
    std::string const name = std::to_string(least);
    Settings all = usual;
    all.insert(all.end(), settings.begin(), settings.end());
    auto const alone = run(name, all);
    EXPECT_GT(alone.at("valid").at("mrr").get<double>(), least);
    EXPECT_GT(alone.at("test").at("mrr").get<double>(), least);
    all.insert(all.end(), {"run.ranks=3", "run.threads=2"});
    EXPECT_EQ(result(run(name + "of3", all)), result(alone));
  }
}

TEST_F(TrainTest, SimulatedNetworkGivesEqualBits) {
  auto const alone = result(run("alone", {}));
  for (std::uint64_t seed : {1, 2}) {
    auto const group = Group::simulated(3, {.seed = seed});
    EXPECT_EQ(result(run_on(group, "simulated" + std::to_string(seed), {"train.prefetch_thread=false"})), alone);
  }
}

TEST_F(TrainTest, ResolvedConfigurationReproducesTheRun) {
  auto const once = result(run("once", {"train.microbatches=0", "optimizer.schedule=cosine", "train.seed=5"}));
  Config const config = load_config(folder_.path() / "once" / "config.toml");
  auto const data = read_data(config);
  train(config, *data, Group::alone(), {.folder = folder_.path() / "again"});
  EXPECT_EQ(result(nlohmann::json::parse(std::ifstream(folder_.path() / "again" / "summary.json"))), once);
}

TEST_F(TrainTest, ResumedRunEqualsUninterruptedRun) {
  // Stops within an epoch, and resumes on another number of ranks.
  for (char const* schedule : {"optimizer.schedule=constant", "optimizer.schedule=linear"}) {
    std::string const name = std::string(schedule).substr(19);
    // The run that ends at step 10 validates there, and its model might be the best one.
    Settings const common{schedule, "optimizer.warmup_steps=5", "train.keep_best=false"};
    auto const with = [&](Settings more) {
      more.insert(more.end(), common.begin(), common.end());
      if (name == "linear") more.push_back("optimizer.total_steps=30");
      return more;
    };
    auto const whole = run(name + "-whole", with({"train.steps=25"}));
    run(name, with({"train.steps=10"}));
    auto const resumed = run(name, with({"train.steps=25", "run.ranks=2"}), true);
    EXPECT_EQ(resumed.at("table_hash"), whole.at("table_hash"));
    EXPECT_EQ(resumed.at("test"), whole.at("test"));
    EXPECT_EQ(resumed.at("samples"), whole.at("samples"));
  }
}

TEST_F(TrainTest, ResumesAfterStopSignal) {
  auto const whole = run("whole", {"run.ranks=2"});
  {
    Config const c = config({"run.ranks=2"});
    auto const data = read_data(c);
    StopSignals const signals;
    std::raise(SIGUSR1);
    run_ranks(Group::threads(2), [&](Group one) { train(c, *data, one, {.folder = folder_.path() / "stopped"}); });
    auto const stopped = nlohmann::json::parse(std::ifstream(folder_.path() / "stopped" / "summary.json"));
    EXPECT_EQ(stopped.at("finished"), false);
    EXPECT_EQ(stopped.at("steps"), 1);
    EXPECT_FALSE(stopped.contains("test"));
  }
  EXPECT_EQ(result(run("stopped", {"run.ranks=2"}, true)), result(whole));
}

// Returns the bytes of all files below a folder.
std::map<std::string, std::string> files_below(std::filesystem::path const& folder) {
  std::map<std::string, std::string> files;
  for (auto const& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    files[entry.path().string()].assign(std::istreambuf_iterator<char>(in), {});
  }
  return files;
}

TEST_F(TrainTest, ResumeOfAFinishedRunChangesNoFile) {
  Settings const settings{"train.steps=12", "run.ranks=2", "placement.policy=adaptive", "placement.trace_steps=5"};
  auto const summary = run("run", settings);
  auto const before = files_below(folder_.path() / "run");
  auto const traces = files_below(folder_.path() / "run" / "placement_trace");
  Settings shorter = settings;
  shorter[0] = "train.steps=9", shorter[1] = "run.ranks=3";
  for (auto const& again : {settings, shorter}) {
    EXPECT_EQ(run("run", again, true), summary);
    EXPECT_EQ(files_below(folder_.path() / "run"), before);
  }
  // A run that was killed during its last evaluation has no result yet.
  std::filesystem::remove(folder_.path() / "run" / "summary.json");
  EXPECT_EQ(run("run", settings, true).at("test"), summary.at("test"));
  EXPECT_EQ(files_below(folder_.path() / "run" / "placement_trace"), traces);
}

TEST_F(TrainTest, ResumeWithoutStepsKeepsTheLoss) {
  Settings const settings{"train.steps=6"};
  auto const whole = run("run", settings);
  std::filesystem::remove(folder_.path() / "run" / "summary.json");
  auto const again = run("run", settings, true);
  EXPECT_EQ(again.at("steps"), 6);
  EXPECT_EQ(again.at("loss"), whole.at("loss"));
}

TEST_F(TrainTest, PatienceEndsRunWithoutImprovement) {
  auto const summary = run("run", {"train.epochs=50", "train.patience=2", "optimizer.learning_rate=0"});
  EXPECT_EQ(summary.at("steps"), 3 * 7);
  EXPECT_EQ(lines("run", "valid").size(), 3U);
  EXPECT_EQ(summary.at("finished"), true);
  // A run that ended by patience does not continue.
  EXPECT_EQ(run("run", {"train.epochs=50", "train.patience=2", "optimizer.learning_rate=0"}, true), summary);
}

TEST_F(TrainTest, RejectsFolderOfAnotherRun) {
  run("run", {"train.steps=2"});
  expect_error([&] { run("run", {"train.steps=2"}); }, {"/run contains a checkpoint", "--resume"});
  expect_error(
      [&] {
        run("run", {"train.steps=2", "model.dim=8"}, true);
      },
      {"model.dim = 16, and the configuration sets 8"});
  expect_error([&] { run("run", {"train.steps=2", "train.microbatches=9"}, true); }, {"train.microbatches = 8"});
  folder_.write("train.txt", "a\tb\tc\n");
  expect_error([&] { run("run", {"train.steps=2", "data.valid=", "data.test="}, true); }, {"other data"});
}

TEST_F(TrainTest, RejectsMoreRanksThanMicrobatches) {
  expect_error([&] { run("run", {"run.ranks=9"}); }, {"9 ranks and 8 microbatches"});
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "run"));
}

TEST_F(TrainTest, GradientErrorNamesTheRow) {
  Settings const diverging{"optimizer.kind=sgd", "optimizer.learning_rate=30", "train.epochs=1000"};
  try {
    run("run", diverging);
    ADD_FAILURE() << "nothing was thrown";
  } catch (GradientError const& error) {
    EXPECT_THAT(error.what(), testing::ContainsRegex("key [0-9]+ \\('(e|goes_on_by_)[0-9]+'\\) in table"));
  }
}

TEST(KeyNames, AreAddedToMessagesWithKeys) {
  Dataset data;
  data.add_train("a", "r", "b");
  auto const message = [](Key key, char const* table) {
    return fmt::format("key {} in table '{}' x", number(key), table);
  };
  Key const b = data.entities.keys()[1], r = data.relations.keys()[0];
  EXPECT_EQ(with_names(message(b, "entities"), data), fmt::format("key {} ('b') in table 'entities' x", number(b)));
  EXPECT_EQ(with_names(message(r, "relations"), data), fmt::format("key {} ('r') in table 'relations' x", number(r)));
  EXPECT_EQ(with_names(message(r, "entities"), data), message(r, "entities"));
  EXPECT_EQ(with_names("the disk is full", data), "the disk is full");
}

TEST_F(TrainTest, ReportsSecondsOfStages) {
  auto const summary = run("run", {"train.steps=3", "run.report_every=1"});
  auto const& seconds = summary.at("stage_seconds");
  double all = 0;
  for (char const* stage : {"prepare", "wait_ready", "pull", "forward_backward", "push", "advance_clock"}) {
    EXPECT_GT(seconds.at(stage), 0) << stage;
    all += seconds.at(stage).get<double>();
  }
  EXPECT_EQ(seconds.at("begin_allreduce"), 0);  // no dense layers
  EXPECT_EQ(seconds.at("wait_apply"), 0);
  EXPECT_LT(all, 600);  // the unit is seconds, not a smaller one
  // Lines of metrics have the seconds so far.
  auto report = lines("run", "stage_seconds");
  EXPECT_EQ(report.size(), 3U);
  report.push_back(summary);
  for (auto const& [stage, in_all] : seconds.items()) {
    double before = 0;
    for (auto const& one : report) {
      double const so_far = one.at("stage_seconds").at(stage);
      EXPECT_EQ(so_far > 0, in_all > 0) << stage;
      EXPECT_GE(so_far, before) << stage;
      before = so_far;
    }
  }
}

// Within an epoch only the stage wait_ready waits. At the end the run also waits for the last round.
TEST_F(TrainTest, ReportsWaitSeconds) {
  auto const summary = run("run", {"run.ranks=2", "train.steps=5", "run.report_every=1"});
  double before = 0;
  auto const report = lines("run", "wait_seconds");
  EXPECT_EQ(report.size(), 5U);
  for (auto const& line : report) {
    double const waited = line.at("wait_seconds");
    EXPECT_GT(waited, before);
    EXPECT_LE(waited, line.at("stage_seconds").at("wait_ready").get<double>() + 1e-9);  // of rounding
    before = waited;
  }
  EXPECT_GT(summary.at("wait_seconds").get<double>(), before);
}

TEST_F(TrainTest, ReportsProgressOnStderr) {
  testing::internal::CaptureStderr();
  run("run", {"train.steps=1", "train.microbatches=0", "run.ranks=9"});
  std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, testing::HasSubstr("120 entities, 4 relations; 420 triples for training, 30 for validation"));
  EXPECT_THAT(text, testing::HasSubstr("9 ranks on host, 1 step of 64 triples\n"));
  EXPECT_THAT(text,
              testing::HasSubstr("microbatches: 9, because there are 9 ranks: tables will differ from runs with 8\n"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("learning_rate")));
  testing::internal::CaptureStderr();
  run("still", {"train.steps=1", "optimizer.learning_rate=0"});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("optimizer.learning_rate is 0: rows keep"));
  testing::internal::CaptureStderr();
  run("run", {"train.steps=1", "train.microbatches=0", "run.ranks=3"}, true);
  text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, testing::HasSubstr("training is already complete: step 1 of 1\n"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("resuming")));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("microbatches")));
}

TEST_F(TrainTest, RejectsFolderThatCannotBeCreated) {
  folder_.write("file", "");
  expect_error([&] { run("file/run", {}); }, {"file/run cannot be created"});
}

TEST_F(TrainTest, SavedRunIsEvaluatedAndSearched) {
  auto const summary = run("run", {});
  for (char const* ranks : {"run.ranks=1", "run.ranks=3"}) {
    SavedRun const saved = open_run(folder_.path() / "run", {ranks});
    run_ranks(Group::threads(static_cast<int>(saved.saved.config.run.ranks)), [&](Group group) {
      EXPECT_EQ(wait_evaluate_run(saved, group, "test").json, summary.at("test"));
      EXPECT_TRUE(saved.data->has("valid"));
    });
  }
  SavedRun const saved = open_run(folder_.path() / "run", {});
  std::vector<std::string> notices;
  std::string const text = nearest_in_run(saved, {{.name = "e3"}, {.name = "e4"}}, 2, notices);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 6);
  EXPECT_TRUE(text.starts_with("e3\n  0.")) << text;
  expect_error([&] { open_run(folder_.path() / "none", {}); }, {"/none has no checkpoint"});
  expect_error([&] { open_run(folder_.path() / "run", {"model.dim=8"}); }, {"model.dim"});
  folder_.write("test.txt", "e1\tgoes_on_by_1\te2\n");
  expect_error([&] { open_run(folder_.path() / "run", {}); }, {"other data"});
}

}  // namespace
}  // namespace gpups::trainer::train_test
