// SPDX-License-Identifier: Apache-2.0
// Runs on click data: they learn, give the same bits on any number of ranks and threads, and can be resumed.
#include <gmock/gmock.h>

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <map>
#include <numeric>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/tasks/click/click_train_fixture.hpp"
#include "trainer/run/saved_run.hpp"
#include "trainer/tasks/click/click_data.hpp"
#include "trainer/tasks/click/click_metrics.hpp"
#include "trainer/tasks/click/text/convert.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer::click_train_test {
namespace {

using test::expect_error;

// A logistic model has no model.dim, so it does not use the settings of ClickTrainTest.
class LogisticTrainTest : public RunTest {
 protected:
  LogisticTrainTest() : RunTest({"data.reader=clicks", "model.name=logistic"}) {
    clicks_ = folder_.write("clicks.tsv", synthetic_clicks(700));
  }
  std::filesystem::path clicks_;
};

void expect_learnt(nlohmann::json const& summary, std::vector<nlohmann::json> const& reports) {
  EXPECT_LT(summary.at("loss").get<double>(), 0.9 * reports.front().at("loss").get<double>());
  EXPECT_GT(summary.at("test").at("auc").get<double>(), 0.75);
  EXPECT_LT(summary.at("test").at("normalized_entropy").get<double>(), 0.95);
  EXPECT_EQ(summary.at("test").at("samples"), 100);
  EXPECT_EQ(summary.at("finished"), true);
  EXPECT_THAT(summary.at("dense_hash").get<std::string>(), testing::MatchesRegex("[0-9a-f]{16}"));
}

TEST_F(ClickTrainTest, EveryModelLearns) {
  for (char const* model : {"fm", "deepfm", "dlrm", "dcnv2"}) {
    auto const summary = run(model, small(model, {"train.epochs=4", "train.batch_size=60", "dense.learning_rate=0.01",
                                                  "run.report_every=5", "optimizer.learning_rate=0.03"}));
    SCOPED_TRACE(model);
    expect_learnt(summary, lines(model, "loss"));
    EXPECT_EQ(summary.at("samples"), 4 * 600);
    EXPECT_EQ(summary.at("steps"), 4 * 10);
  }
}

TEST_F(ClickTrainTest, LearnsWithEveryDenseOptimizer) {
  for (std::string const& optimizer : std::vector<std::string>{"dense.optimizer=sgd", "dense.optimizer=adagrad",
                                                               "dense.optimizer=lamb", "dense.optimizer=ftrl"}) {
    SCOPED_TRACE(optimizer);
    auto const summary = run(
        optimizer,
        small("dlrm",
              {"train.epochs=4", "train.batch_size=60", "run.report_every=5", "optimizer.learning_rate=0.03", optimizer,
               optimizer == "dense.optimizer=ftrl" ? "dense.learning_rate=0.5" : "dense.learning_rate=0.03"}));
    expect_learnt(summary, lines(optimizer, "loss"));
  }
}

TEST_F(LogisticTrainTest, Learns) {
  auto const summary = run("run", {"data.train=" + clicks_.string(), "data.test_share=0.1428571", "train.epochs=12",
                                   "dense.learning_rate=0.05", "linear.learning_rate=0.1", "run.report_every=5"});
  expect_learnt(summary, lines("run", "loss"));
  EXPECT_EQ(summary.at("dense_parameters"), 14);
}

TEST_F(ClickTrainTest, BitsAreIndependentOfRanksAndThreads) {
  auto const alone = result(run("alone", rich()));
  EXPECT_TRUE(alone.contains("progressive") && alone.contains("dense_hash") && alone.contains("valid")) << alone;
  for (int ranks : {2, 3, 4, 8}) {
    EXPECT_EQ(result(run(fmt::format("ranks{}", ranks), rich({fmt::format("run.ranks={}", ranks)}))), alone) << ranks;
  }
  EXPECT_EQ(result(run("threads", rich({"run.threads=2"}))), alone);
  EXPECT_EQ(result(run("ahead", rich({"train.lookahead=1"}))), alone);
  EXPECT_EQ(result(run("inline", rich({"train.prefetch_thread=false", "run.ranks=2"}))), alone);
}

TEST_F(ClickTrainTest, EveryModelGivesEqualBitsOnThreeRanks) {
  for (char const* model : {"fm", "deepfm", "dcnv2"}) {
    auto const alone = result(run(std::string(model) + "1", small(model)));
    EXPECT_EQ(result(run(std::string(model) + "3", small(model, {"run.ranks=3"}))), alone) << model;
  }
}

TEST_F(ClickTrainTest, SixteenBitRowsGiveEqualBitsOnThreeRanks) {
  for (std::string const& values : std::vector<std::string>{"model.value_type=bfloat16", "model.value_type=float16"}) {
    auto const alone = result(run(values + "1", rich({values})));
    EXPECT_EQ(result(run(values + "3", rich({values, "run.ranks=3"}))), alone) << values;
  }
}

TEST_F(ClickTrainTest, SimulatedNetworkGivesEqualBits) {
  auto const alone = result(run("alone", rich({"train.steps=13"})));
  for (std::uint64_t seed : {1, 2}) {
    auto const group = Group::simulated(3, {.seed = seed});
    EXPECT_EQ(result(run_on(group, "simulated" + std::to_string(seed),
                            rich({"train.steps=13", "train.prefetch_thread=false"}))),
              alone);
  }
}

// Batches of 3 shuffled samples, and the last one in the order of the file, have fewer of them than microbatches, so
// some ranks have no samples.
TEST_F(ClickTrainTest, SmallBatchesGiveEqualBits) {
  clicks_ = folder_.write("few.tsv", synthetic_clicks(150));
  Settings const shuffled{"train.batch_size=3", "train.steps=6"};
  Settings const in_order{"data.test_share=0.12", "eval.progressive=true"};  // 132 for training: 64, 64 and 4
  for (Settings const& few : {shuffled, in_order}) {
    auto const alone = result(run("alone" + few[0], small("deepfm", few)));
    EXPECT_EQ(alone.at("samples"), few == shuffled ? 6 * 3 : 3 * 132);
    for (int ranks : {3, 8}) {
      auto more = few;
      more.push_back(fmt::format("run.ranks={}", ranks));
      EXPECT_EQ(result(run(fmt::format("ranks{}{}", ranks, few[0]), small("deepfm", more))), alone) << ranks;
    }
  }
}

TEST_F(ClickTrainTest, BinaryFileGivesTheSameRun) {
  auto const text = run("text", small("dlrm", {"train.steps=5"}));
  auto const binary = folder_.path() / "clicks.bin";
  convert_samples(clicks_, binary, criteo_layout(), {});
  clicks_ = binary;
  auto const of_file = run("binary", small("dlrm", {"train.steps=5", "run.ranks=2"}));
  EXPECT_EQ(result(of_file), result(text));
  EXPECT_EQ(of_file.at("data_digest"), text.at("data_digest"));
}

// The data changes after the run has read it once, as it does when a program writes it anew.
TEST_F(ClickTrainTest, DataThatChangesWhileTrainingEndsTheRunWithAnError) {
  auto const binary = folder_.path() / "clicks.bin";
  convert_samples(clicks_, binary, criteo_layout(), {});
  std::filesystem::last_write_time(binary, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  clicks_ = binary;
  for (char const* ranks : {"run.ranks=1", "run.ranks=3"}) {
    Config const c = config(small("dlrm", {ranks}));
    auto const data = read_data(c);
    auto const size = std::filesystem::file_size(binary);
    std::filesystem::resize_file(binary, size / 2);
    expect_error(
        [&] {
          run_ranks(Group::threads(static_cast<int>(c.run.ranks)),
                    [&](Group one) { train(c, *data, one, {.folder = folder_.path() / ranks}); });
        },
        {"clicks.bin changed while it was read"});
    convert_samples(folder_.path() / "clicks.tsv", binary, criteo_layout(), {});
  }
}

TEST_F(ClickTrainTest, ResolvedConfigurationReproducesTheRun) {
  auto const once = result(run("once", rich({"train.microbatches=0", "optimizer.schedule=cosine", "train.seed=5",
                                             "optimizer.kind=rowwise_adagrad", "dense.optimizer=adagrad"})));
  Config const config = load_config(folder_.path() / "once" / "config.toml");
  auto const data = read_data(config);
  train(config, *data, Group::alone(), {.folder = folder_.path() / "again"});
  EXPECT_EQ(result(nlohmann::json::parse(std::ifstream(folder_.path() / "again" / "summary.json"))), once);
}

TEST_F(ClickTrainTest, ResumedRunEqualsUninterruptedRun) {
  for (char const* optimizer :
       {"dense.optimizer=adam", "dense.optimizer=sgd", "dense.optimizer=lamb", "dense.optimizer=ftrl"}) {
    auto const with = [&](Settings more) {
      more.insert(more.end(),
                  {optimizer, "optimizer.schedule=linear", "optimizer.total_steps=30", "optimizer.warmup_steps=5",
                   "train.keep_best=false"});  // the shorter run validates at step 13
      return rich(more);
    };
    std::string const name = std::string(optimizer).substr(16);
    auto whole = result(run(name + "-whole", with({"train.steps=25"})));
    run(name, with({"train.steps=13", "run.ranks=3"}));
    auto resumed = result(run(name, with({"train.steps=25", "run.ranks=2"}), true));
    for (auto* one : {&whole, &resumed}) one->erase("loss");  // since the last report
    EXPECT_EQ(resumed, whole) << name;
  }
}

TEST_F(ClickTrainTest, SavedRunIsEvaluatedOnAnyRankCount) {
  auto const summary = run("run", rich({"train.keep_best=false"}));  // the validation is that of the saved step
  SavedRun const saved = open_run(folder_.path() / "run", {});
  for (int ranks : {1, 3}) {
    for (char const* split : {"test", "valid"}) {
      run_ranks(ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks),
                [&](Group group) { EXPECT_EQ(wait_evaluate_run(saved, group, split).json, summary.at(split)); });
    }
  }
  std::vector<std::string> unused;
  expect_error([&] { nearest_in_run(saved, {{.name = "a"}}, 1, unused); }, {"has no entities"});
}

TEST_F(ClickTrainTest, ResumeRejectsOtherLayersOrData) {
  run("run", small("dcnv2", {"train.steps=2"}));
  auto const again = [&](Settings const& more) {
    auto settings = small("dcnv2", {"train.steps=2"});
    settings.insert(settings.end(), more.begin(), more.end());
    run("run", settings, true);
  };
  expect_error([&] { again({"model.top=[9]"}); }, {"model.top = [8], and the configuration sets [9]"});
  expect_error([&] { again({"model.wide=true"}); }, {"model.wide = false, and the configuration sets true"});
  expect_error([&] { again({"dense.beta1=0.8"}); }, {"dense.beta1 = 0.9, and the configuration sets 0.8"});
  expect_error([&] { again({"model.dims=[\"C1:8\"]"}); }, {"model.dims = [], and the configuration sets ['C1:8']"});
  expect_error([&] { again({"data.test_share=0.2"}); }, {"other data"});
  clicks_ = folder_.write("clicks.tsv", synthetic_clicks(699));
  expect_error([&] { again({}); }, {"other data"});
}

TEST_F(ClickTrainTest, EverySettingChangesTheResult) {
  auto const with = [&](Settings more) {
    more.insert(more.begin(),
                {"model.wide=true", "model.numeric_features=both", "train.steps=3", "data.multi_hot=[\"C26\"]"});
    return small("dcnv2", more);
  };
  auto const hash = [&](std::string const& name, Settings const& settings) {
    auto const summary = run(name, settings);
    return std::pair(summary.at("table_hash").get<std::string>(), summary.at("dense_hash").get<std::string>());
  };
  auto const base = hash("base", with({}));
  EXPECT_EQ(hash("same", with({})), base);
  for (char const* setting : {"model.dims=[\"C1:8\"]",
                              "model.shared=[\"C3,C4\"]",
                              "model.admission_count=3",
                              "model.min_count=150",
                              "model.buckets=2",
                              "model.cross_layers=2",
                              "model.top=[9]",
                              "model.row_dropout=0.1",
                              "model.dropout=0.1",
                              "model.numeric_features=log",
                              "model.numeric_features=buckets",
                              "model.init_scale=0.5",
                              "model.value_type=bfloat16",
                              "model.init=uniform",
                              "linear.kind=sgd",
                              "linear.kind=ftrl",
                              "linear.learning_rate=0.01",
                              "linear.initial_accumulator=0.1",
                              "linear.l2=0.01",
                              "linear.admission_count=3",
                              "optimizer.l2=0.01",
                              "optimizer.clip_norm=1e-4",
                              "dense.optimizer=sgd",
                              "dense.optimizer=adagrad",
                              "dense.optimizer=lamb",
                              "dense.optimizer=ftrl",
                              "dense.learning_rate=0.1",
                              "dense.beta1=0.5",
                              "dense.beta2=0.5",
                              "dense.epsilon=0.1",
                              "dense.weight_decay=0.1",
                              "optimizer.schedule=linear",
                              "data.order=file",
                              "train.seed=2"}) {
    EXPECT_NE(hash(setting, with({setting})), base) << setting;
  }
  auto const sgd = hash("sgd", with({"dense.optimizer=sgd"}));
  EXPECT_NE(hash("momentum", with({"dense.optimizer=sgd", "dense.momentum=0"})), sgd);
  auto const adagrad = hash("adagrad", with({"dense.optimizer=adagrad"}));
  EXPECT_NE(hash("accumulator", with({"dense.optimizer=adagrad", "dense.initial_accumulator=0.1"})), adagrad);
  auto const decay = with({"dense.optimizer=lamb", "dense.weight_decay=0.1"});
  EXPECT_NE(hash("decay", decay), hash("lamb", with({"dense.optimizer=lamb"})));
  auto const ftrl = hash("ftrl", with({"dense.optimizer=ftrl", "linear.kind=ftrl"}));
  for (char const* setting : {"dense.l1=1e-3", "dense.l2=0.1", "dense.beta=0.5", "dense.initial_accumulator=0.1",
                              "linear.l1=1e-3", "linear.beta=0.5"}) {
    EXPECT_NE(hash(setting, with({"dense.optimizer=ftrl", "linear.kind=ftrl", setting})), ftrl) << setting;
  }
}

TEST_F(ClickTrainTest, PoolingChangesTheResult) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += fmt::format("{}\t{}|{}\n", i % 2, i % 3, i % 4);
  clicks_ = folder_.write("lists.tsv", text);
  Settings const lists{"data.numeric_columns=0", "data.categorical_columns=1", "data.multi_hot=[\"C1\"]",
                       "train.steps=2"};
  auto mean = lists;
  mean.push_back("model.pooling=mean");
  EXPECT_NE(run("mean", small("deepfm", mean)).at("table_hash"), run("sum", small("deepfm", lists)).at("table_hash"));
}

// Compares with a simple logistic regression: weights in maps, one sample after the other, and each batch is predicted
// before the step that trains on it.
TEST_F(LogisticTrainTest, ProgressiveMetricsUsePredictionsBeforeTraining) {
  Settings const settings{"data.train=" + clicks_.string(),
                          "data.numeric_columns=13",
                          "data.categorical_columns=26",
                          "data.test_share=0",
                          "model.numeric_features=none",
                          "train.batch_size=200",
                          "linear.kind=sgd",
                          "linear.learning_rate=2",
                          "dense.optimizer=sgd",
                          "dense.momentum=0",
                          "dense.learning_rate=0.5",
                          "train.epochs=2",
                          "eval.progressive=true",
                          "run.ranks=2"};
  auto const summary = run("run", settings);
  Config const c = config(settings);
  ClickData const data(c);
  ASSERT_EQ(data.samples(), 700U);

  std::map<std::pair<std::size_t, std::uint64_t>, double> weights;
  SampleBatch all;
  data.train().samples.read(0, 700, all);
  double const share = std::accumulate(all.labels.begin(), all.labels.end(), 0.0) / 700;
  double bias = std::log(share / (1 - share));  // the initial bias of a run
  std::vector<Prediction> predicted;
  double loss = 0;
  for (std::uint64_t first = 0; first < 700; first += 200) {
    SampleBatch samples;
    data.train().samples.read(first, std::min<std::uint64_t>(200, 700 - first), samples);
    std::map<std::pair<std::size_t, std::uint64_t>, double> gradients;
    double bias_gradient = 0;
    for (std::size_t i = 0; i < samples.samples; ++i) {
      double logit = bias;
      for (std::size_t f = 0; f < 26; ++f) logit += weights[{f, samples.values[i * 26 + f]}];
      double const p = 1 / (1 + std::exp(-logit)), label = samples.labels[i];
      predicted.push_back({static_cast<float>(p), samples.labels[i]});
      loss -= label > 0 ? std::log(p) : std::log(1 - p);
      for (std::size_t f = 0; f < 26; ++f) gradients[{f, samples.values[i * 26 + f]}] += p - label;
      bias_gradient += p - label;
    }
    auto const n = static_cast<double>(samples.samples);
    for (auto const& [at, gradient] : gradients) weights[at] -= 2 * gradient / n;
    bias -= 0.5 * bias_gradient / n;
  }
  auto const reported = lines("run", "progressive");
  ASSERT_EQ(reported.size(), 1U);  // not of the second epoch, whose samples were trained on
  auto const& json = reported[0].at("progressive");
  EXPECT_EQ(reported[0].at("step"), 4);
  EXPECT_EQ(json.at("samples"), 700);
  EXPECT_NEAR(json.at("auc").get<double>(), area_under_curve(predicted).value(), 1e-4);
  EXPECT_NEAR(json.at("log_loss").get<double>(), loss / 700, 1e-5);
  EXPECT_EQ(summary.at("progressive"), json);
}

// Users come one after another, and each has one label for all samples: nothing can be predicted about a user who comes
// for the first time. With the samples of all users in random order, the label of a user would be known soon.
TEST_F(LogisticTrainTest, ProgressiveMetricsAreThoseOfTheOrderOfTheFile) {
  constexpr int kUsers = 200, kSamplesOfUser = 32;
  std::string text;
  std::mt19937 random(7);
  for (int user = 0; user < kUsers; ++user) {
    std::string const line = fmt::format("{}\tuser{}\n", random() >> 31, user);
    for (int i = 0; i < kSamplesOfUser; ++i) text += line;
  }
  clicks_ = folder_.write("users.tsv", text);
  auto const settings = [&](Settings more) {
    more.insert(more.end(), {"data.train=" + clicks_.string(), "data.numeric_columns=0", "data.categorical_columns=1",
                             "model.numeric_features=none", "data.test_share=0", "linear.learning_rate=0.5",
                             "train.batch_size=640"});
    return more;
  };
  testing::internal::CaptureStderr();
  auto const in_order = run("in_order", settings({"eval.progressive=true"}));
  std::string const log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(in_order.at("progressive").at("samples"), kUsers * kSamplesOfUser);
  EXPECT_NEAR(in_order.at("progressive").at("auc").get<double>(), 0.5, 0.1);
  EXPECT_EQ(lines("in_order", "progressive").size(), 1U);
  EXPECT_THAT(log, testing::HasSubstr("progressive validation is of the first epoch only"));
  EXPECT_EQ(result(run("ranks", settings({"eval.progressive=true", "run.ranks=3"}))), result(in_order));
  EXPECT_EQ(result(run("stated", settings({"eval.progressive=true", "data.order=file"}))), result(in_order));
  EXPECT_EQ(run("file", settings({"data.order=file"})).at("table_hash"), in_order.at("table_hash"));
  EXPECT_NE(run("shuffled", settings({})).at("table_hash"), in_order.at("table_hash"));
}

TEST_F(ClickTrainTest, ProgressiveMetricsAreOffByDefault) {
  auto const summary = run("run", small("fm", {"train.steps=2"}));
  EXPECT_FALSE(summary.contains("progressive"));
  EXPECT_TRUE(lines("run", "progressive").empty());
}

TEST_F(ClickTrainTest, DivergenceGivesAnError) {
  Settings const diverging{"dense.optimizer=sgd", "dense.learning_rate=1e6", "train.epochs=50", "run.ranks=2"};
  try {
    run("run", small("dlrm", diverging));
    ADD_FAILURE() << "nothing was thrown";
  } catch (Error const& error) {
    EXPECT_THAT(error.what(), testing::ContainsRegex("not finite|too large"));
  }
}

TEST_F(ClickTrainTest, ReportsTheDataItRead) {
  testing::internal::CaptureStderr();
  run("run", small("dlrm", {"train.steps=1", "data.valid_share=0.1"}));
  std::string const text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, testing::HasSubstr("13 numbers and 26 categories; 530 samples for training, 70 for validation, "
                                       "100 for the test"));
  EXPECT_THAT(text, testing::HasSubstr("1 step of 64 samples"));
  EXPECT_THAT(text, testing::HasSubstr("dense layers: values"));
  EXPECT_THAT(text, testing::ContainsRegex("test auc 0\\.[0-9]{4}  log-loss"));
}

}  // namespace
}  // namespace gpups::trainer::click_train_test
