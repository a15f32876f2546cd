// SPDX-License-Identifier: Apache-2.0
// Runs on ratings: they learn, give the same bits on any number of ranks and threads, and can be resumed.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/run/train_fixture.hpp"
#include "trainer/base/random.hpp"
#include "trainer/run/saved_run.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer::ratings_train_test {
namespace {

using test::expect_error;

// Ratings of 60 rows and 40 columns with two factors each; about half of the pairs have a rating.
std::string synthetic_ratings() {
  std::string text;
  auto const wave = [](std::uint64_t what, std::uint64_t i) {
    return static_cast<double>(random_bits(what, i) >> 40) * 0x1p-23 - 1;  // from -1 to 1
  };
  for (std::uint64_t i = 0; i < 60 * 40; ++i) {
    std::uint64_t const row = i / 40, column = i % 40;
    if (random_bits(7, i) % 2 == 0) continue;
    text += fmt::format("{} {} {:.4f}\n", row + 100, column,
                        wave(1, row) * wave(2, column) + wave(3, row) * wave(4, column));
  }
  return text;
}

class RatingsTrainTest : public RunTest {
 protected:
  RatingsTrainTest()
      : RunTest({"data.reader=ratings", "data.train=ratings.txt", "data.valid_share=0.1", "model.dim=8",
                 "model.init_scale=0.3", "optimizer.learning_rate=0.1"}) {
    folder_.write("ratings.txt", synthetic_ratings());
  }
};

TEST_F(RatingsTrainTest, Learns) {
  auto const summary = run("run", {"train.epochs=60", "model.l2=0.005"});
  auto const reports = lines("run", "loss");
  // Ratings have a mean square of about 2 / 9.
  EXPECT_GT(reports.front().at("loss").get<double>(), 0.15);
  EXPECT_LT(summary.at("loss").get<double>(), 0.01);
  for (char const* split : {"valid", "test"}) {
    auto const& json = summary.at(split);
    EXPECT_LT(json.at("mse").get<double>(), 0.05) << split;
    EXPECT_DOUBLE_EQ(json.at("rmse").get<double>(), std::sqrt(json.at("mse").get<double>())) << split;
    EXPECT_LE(json.at("mae").get<double>(), json.at("rmse").get<double>()) << split;
    EXPECT_GT(json.at("mae").get<double>(), json.at("mse").get<double>()) << split;  // errors are below 1
    EXPECT_GT(json.at("ratings"), 50) << split;
  }
  EXPECT_EQ(summary.at("rows"), 60);
  EXPECT_EQ(summary.at("columns"), 40);
  EXPECT_GT(summary.at("samples_per_s"), 0);
  auto const valid = lines("run", "valid");
  EXPECT_LT(valid.back().at("valid").at("mse"), valid.front().at("valid").at("mse"));
}

TEST_F(RatingsTrainTest, BitsAreIndependentOfRanksAndThreads) {
  auto const alone = result(run("alone", {}));
  EXPECT_EQ(result(run("ranks2", {"run.ranks=2"})), alone);
  EXPECT_EQ(result(run("ranks3", {"run.ranks=3"})), alone);
  EXPECT_EQ(result(run("ranks4", {"run.ranks=4", "run.threads=2"})), alone);
  EXPECT_EQ(result(run("threads", {"run.threads=2"})), alone);
  EXPECT_EQ(result(run("ahead", {"train.lookahead=1"})), alone);
  EXPECT_EQ(result(run("inline", {"train.prefetch_thread=false", "run.ranks=2"})), alone);
  auto const group = Group::simulated(3, {.seed = 1});
  EXPECT_EQ(result(run_on(group, "simulated", {"train.prefetch_thread=false"})), alone);
}

TEST_F(RatingsTrainTest, ResumedRunEqualsUninterruptedRun) {
  auto whole = result(run("whole", {"train.steps=40"}));
  run("run", {"train.steps=13", "run.ranks=3"});
  auto resumed = result(run("run", {"train.steps=40", "run.ranks=2"}, true));
  for (auto* one : {&whole, &resumed}) one->erase("loss");  // since the last report
  EXPECT_EQ(resumed, whole);
  expect_error(
      [&] {
        run("run", {"train.steps=41", "model.dim=9"}, true);
      },
      {"model.dim = 8, and the configuration sets 9"});
  folder_.write("ratings.txt", synthetic_ratings() + "1 1 1\n");
  expect_error([&] { run("run", {"train.steps=41"}, true); }, {"other data"});
}

TEST_F(RatingsTrainTest, ReusedBatchesGiveEqualBitsOnAnyRanks) {
  auto const with = [&](Settings more) {
    more.push_back("train.reuse_batches=true");
    return more;
  };
  auto const alone = result(run("alone", with({})));
  EXPECT_NE(alone.at("table_hash"), run("anew", {}).at("table_hash"));  // other batches
  EXPECT_EQ(result(run("ranks3", with({"run.ranks=3", "run.threads=2"}))), alone);
  EXPECT_EQ(result(run("inline", with({"train.prefetch_thread=false", "run.ranks=2"}))), alone);
  EXPECT_EQ(result(run("far", with({"train.lookahead=40"}))), alone);
  run("resumed", with({"train.steps=21", "run.ranks=2"}));  // in the second epoch
  auto resumed = result(run("resumed", with({"train.steps=48"}), true));
  EXPECT_EQ(resumed.at("table_hash"), alone.at("table_hash"));
  expect_error([&] { run("resumed", {"train.steps=48"}, true); },
               {"train.reuse_batches = true, and the configuration sets false"});
}

TEST_F(RatingsTrainTest, PatienceEndsRunWithoutImprovement) {
  auto const summary = run("run", {"train.epochs=50", "train.patience=2", "optimizer.learning_rate=0"});
  EXPECT_EQ(lines("run", "valid").size(), 3U);
  EXPECT_EQ(summary.at("finished"), true);
}

TEST_F(RatingsTrainTest, SavedRunIsEvaluatedAndExported) {
  auto const summary = run("run", {});
  SavedRun const saved = open_run(folder_.path() / "run", {});
  for (int ranks : {1, 3}) {
    for (char const* split : {"test", "valid"}) {
      run_ranks(Group::threads(ranks),
                [&](Group group) { EXPECT_EQ(wait_evaluate_run(saved, group, split).json, summary.at(split)); });
    }
  }
  std::vector<std::string> unused;
  expect_error([&] { nearest_in_run(saved, {{.name = "a"}}, 1, unused); }, {"has no entities"});
  export_run(folder_.path() / "run", {}, folder_.path() / "exported", ModelFormat::kFlat);
  auto const rows = folder_.path() / "exported" / "rows";
  EXPECT_EQ(std::filesystem::file_size(rows / "rows.keys.bin"), 60 * sizeof(Key));
  EXPECT_EQ(std::filesystem::file_size(rows / "columns.values.bin"), 40 * 9 * sizeof(float));  // with biases
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "exported" / "entities.tsv"));
}

// Ratings of one to five whose mean is 3 and whose rows and columns differ: a model without biases needs factors for
// it.
std::string biased_ratings() {
  std::string text;
  for (std::uint64_t i = 0; i < 60 * 40; ++i) {
    std::uint64_t const row = i / 40, column = i % 40;
    if (random_bits(7, i) % 3 == 0) continue;
    text += fmt::format("{} {} {:.2f}\n", row, column,
                        3 + 0.02 * static_cast<double>(row) - 0.6 + 0.07 * static_cast<double>(column) - 1.4);
  }
  return text;
}

TEST_F(RatingsTrainTest, BiasesLearnWhatRowsAndColumnsHaveInCommon) {
  folder_.write("ratings.txt", biased_ratings());
  auto const with = run("with", {"train.epochs=40", "model.dim=1", "model.init_scale=0.01"});
  auto const without =
      run("without", {"train.epochs=40", "model.dim=1", "model.init_scale=0.01", "model.biases=false"});
  EXPECT_LT(with.at("test").at("rmse").get<double>(), 0.1);
  EXPECT_GT(without.at("test").at("rmse").get<double>(), 2 * with.at("test").at("rmse").get<double>());
}

TEST_F(RatingsTrainTest, PredictsRatingsOfKnownAndUnknownIds) {
  folder_.write("ratings.txt", biased_ratings());
  run("run", {"train.epochs=60", "model.dim=2", "run.ranks=2"});
  export_run(folder_.path() / "run", {}, folder_.path() / "exported", ModelFormat::kFlat);
  auto const description = nlohmann::json::parse(std::ifstream(folder_.path() / "exported" / "model.json"));
  double const mean = description.at("mean");
  EXPECT_NEAR(mean, 3, 0.1);
  EXPECT_EQ(description.at("biases"), true);

  auto const file = folder_.write("pairs.txt", "row column rating\n0 0\n59 39 1\n59 99999\n77777 99999\n");
  std::vector<float> predictions;
  std::vector<std::string> notices;
  predict_run(folder_.path() / "run", {}, file, notices,
              [&](std::span<float const> some) { predictions.insert(predictions.end(), some.begin(), some.end()); });
  ASSERT_EQ(predictions.size(), 4U);
  EXPECT_NEAR(predictions[0], 1, 0.2);
  EXPECT_NEAR(predictions[1], description.at("highest").get<double>(), 0.2);
  EXPECT_LE(predictions[1], description.at("highest").get<float>());
  EXPECT_NEAR(predictions[2], mean + 0.6, 0.2);  // an unknown column counts as zeros, and so does its bias
  EXPECT_FLOAT_EQ(predictions[3], static_cast<float>(mean));
  EXPECT_THAT(notices, testing::ElementsAre(testing::HasSubstr("with a heading"),
                                            testing::HasSubstr("2 of 4 pairs in " + file.string() +
                                                               " have a row or a column without training ratings")));

  folder_.write("pairs.txt", "1 2\n1 x\n");
  expect_error([&] { predict_run(folder_.path() / "run", {}, file, notices, [](auto) {}); },
               {"pairs.txt:2 has no column id", "each line needs a prediction"});
  folder_.write("pairs.txt", "1 2\n1\n");
  expect_error([&] { predict_run(folder_.path() / "run", {}, file, notices, [](auto) {}); },
               {"pairs.txt:2 has 1 field, none for column", "): correct the lines"});
}

TEST_F(RatingsTrainTest, PredictsFromTheColumnsOfTheRun) {
  std::istringstream lines(biased_ratings());
  std::string text;
  for (std::string row, column, rating; lines >> row >> column >> rating;) {
    text += fmt::format("{} {} {}\n", rating, row, column);
  }
  folder_.write("ratings.txt", text);
  run("run", {"train.epochs=40", "model.dim=2", "data.columns=['2','3','1']"});
  std::vector<float> predictions;
  std::vector<std::string> notices;
  predict_run(folder_.path() / "run", {}, folder_.write("pairs.txt", "3 0 0\n3 59 39\n"), notices,
              [&](std::span<float const> some) { predictions.insert(predictions.end(), some.begin(), some.end()); });
  ASSERT_EQ(predictions.size(), 2U);
  EXPECT_LT(predictions[0], 1.5);
  EXPECT_GT(predictions[1], 4);
}

// The metrics of the test split are those of the predictions, whatever the unit of the ratings.
TEST_F(RatingsTrainTest, MetricsDoNotDependOnTheUnit) {
  for (double const unit : {1e-9, 1.0, 1e9, 1e30}) {
    std::string train, test, pairs;
    std::vector<double> ratings;
    for (int i = 0; i < 400; ++i) {
      double const rating = unit * (i % 7 + 1);
      bool const held_out = i % 5 == 0;
      (held_out ? test : train) += fmt::format("{} {} {:.9g}\n", i / 20, i % 20, rating);
      if (!held_out) continue;
      pairs += fmt::format("{} {}\n", i / 20, i % 20);
      ratings.push_back(double{static_cast<float>(rating)});
    }
    folder_.write("ratings.txt", train);
    folder_.write("test.txt", test);
    std::string const name = fmt::format("run{}", unit);
    auto const summary = run(name, {"train.epochs=2", "data.test=test.txt", "data.valid_share=0"});
    std::vector<float> predictions;
    std::vector<std::string> notices;
    predict_run(folder_.path() / name, {}, folder_.write("pairs.txt", pairs), notices,
                [&](std::span<float const> some) { predictions.insert(predictions.end(), some.begin(), some.end()); });
    double squares = 0, distances = 0;
    for (std::size_t i = 0; i < ratings.size(); ++i) {
      double const error = predictions[i] - ratings[i];
      squares += error * error / ratings.size();
      distances += std::fabs(error) / ratings.size();
    }
    EXPECT_NEAR(summary.at("test").at("mse").get<double>() / squares, 1, 1e-6) << unit;
    EXPECT_NEAR(summary.at("test").at("mae").get<double>() / distances, 1, 1e-6) << unit;
  }
}

// Without its heading, a file whose columns were found by their names would be read the other way round.
TEST_F(RatingsTrainTest, PredictsNoFileWhoseIdsWouldBeExchanged) {
  std::string text = "movieId,userId,rating\n", without;
  for (int i = 0; i < 100; ++i) text += fmt::format("{},{},{}\n", i % 10, i / 10, 1 + i % 5);
  folder_.write("ratings.txt", text);
  run("named", {"train.epochs=1"});
  folder_.write("ratings.txt", text.substr(text.find('\n') + 1));
  run("unnamed", {"train.epochs=1"});
  std::vector<std::string> notices;
  auto const predict = [&](std::string const& name, std::string const& pairs) {
    predict_run(folder_.path() / name, {}, folder_.write("pairs.csv", pairs), notices, [](auto) {});
  };
  predict("named", "movieId,userId\n1,2\n");
  predict("named", "userId,movieId\n1,2\n");
  predict("unnamed", "1,2\n");
  predict("unnamed", "userId,movieId\n1,2\n");
  expect_error([&] { predict("named", "1,2\n"); }, {"has none", "the training data has a heading"});
  expect_error([&] { predict("unnamed", "movieId,userId\n1,2\n"); }, {"has a heading", "the training data has none"});
  // Names of one's own.
  folder_.write("ratings.txt", "film,kunde,note\n" + text.substr(text.find('\n') + 1));
  run("own", {"train.epochs=1"});
  predict("own", "film,kunde\n1,2\n");
  predict("own", "1,2\n");
  expect_error([&] { predict("own", "kunde,film\n1,2\n"); }, {"the training data has them in another order"});
  folder_.write("ratings.txt", text.substr(text.find('\n') + 1));
  run("numbered", {"train.epochs=1", "data.columns=[\"2\", \"1\", \"3\"]"});
  predict("numbered", "1,2\n");
  predict("numbered", "movieId,userId\n1,2\n");
  expect_error([&] { predict("numbered", "userId,movieId\n1,2\n"); }, {"column 2, which the heading calls 'movieId'"});
}

TEST_F(RatingsTrainTest, SaysThatRatingsAreEqualOrHaveFewDigits) {
  auto const notices_of = [&](double first, double step) {
    std::string text;
    for (int i = 0; i < 30; ++i) text += fmt::format("{} {} {:.3f}\n", i / 6, i % 6, first + step * (i % 3));
    folder_.write("ratings.txt", text);
    return read_data(config({}))->notices();
  };
  EXPECT_THAT(notices_of(3, 0), testing::Contains(testing::HasSubstr("there is nothing to learn")));
  EXPECT_THAT(notices_of(1e6, 1), testing::Contains(testing::HasSubstr("subtract a constant")));
  EXPECT_THAT(notices_of(1e5, 100), testing::Not(testing::Contains(testing::HasSubstr("constant"))));
  EXPECT_THAT(notices_of(0, 1), testing::ElementsAre(testing::HasSubstr("ratings from 0 to 2, mean 1")));
}

TEST_F(RatingsTrainTest, DivergenceErrorNamesTheTable) {
  Settings const diverging{"optimizer.kind=sgd", "optimizer.learning_rate=1e5", "train.epochs=1000"};
  expect_error([&] { run("run", diverging); }, {"in table '"});
}

TEST_F(RatingsTrainTest, RejectsSettingsWithoutEffect) {
  for (char const* setting :
       {"model.n3=0.1", "model.negatives=3", "model.negative_reuse=3", "model.loss=softmax", "model.sampling=shared",
        "model.wide=true", "model.admission_count=2", "model.top=[8]", "eval.hits=[1]", "eval.samples_max=5",
        "eval.progressive=true", "linear.kind=sgd", "dense.optimizer=sgd", "data.numeric_columns=3",
        "data.categorical_columns=2", "train.expire_after=9", "run.reader_threads=1"}) {
    expect_error([&] { config({setting}); }, {setting, "has no effect here"});
  }
  expect_error([&] { config({"data.valid=ratings.txt", "data.valid_share=0.2"}); }, {"data.valid_share"});
  expect_error([&] { config({"model.name=complex"}); }, {"data.reader is \"ratings\"", "use one of factorization"});
  expect_error([&] { parse_config("[data]\nreader = 'ratings'\n", "run.toml", "/", {}); },
               {"data.train is empty", "set it to a file"});
}

TEST_F(RatingsTrainTest, ReportsTheDataItRead) {
  testing::internal::CaptureStderr();
  run("run", {"train.steps=1"});
  std::string const text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, testing::ContainsRegex("60 rows, 40 columns; [0-9]+ ratings for training, [0-9]+ for validation"));
  EXPECT_THAT(text, testing::HasSubstr("1 step of 64 ratings"));
  EXPECT_THAT(text, testing::ContainsRegex("test mse [0-9.]+  rmse [0-9.]+  mae [0-9.]+"));
}

}  // namespace
}  // namespace gpups::trainer::ratings_train_test
