// SPDX-License-Identifier: Apache-2.0
// Predictions and exports of trained click-through models, and rows that expire.
#include "trainer/tasks/click/saved_clicks.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <memory>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/tasks/click/click_train_fixture.hpp"
#include "trainer/run/saved_run.hpp"
#include "trainer/tasks/click/click_metrics.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer::saved_clicks_test {
namespace {

using test::expect_error;

// model.wide of the file has no effect on a model that has a linear part anyway.
TEST_F(ClickTrainTest, AnotherModelThanThatOfTheFileIsSaved) {
  for (std::string const name : {"deepfm", "fm", "logistic"}) {
    std::vector<nlohmann::json> summaries;
    for (char const* wide : {"false", "true"}) {
      Config const config = parse_config(
          fmt::format("[data]\nreader = 'clicks'\ntrain = 'clicks.tsv'\ntest_share = 0.1\n[model]\nname = 'dcnv2'\n"
                      "wide = {}\ndim = 4\n[train]\nsteps = 4\nbatch_size = 64\n[run]\ndevice = 'host'\n",
                      wide),
          "run.toml", folder_.path(), {"model.name=" + name});
      auto const data = read_data(config);
      std::filesystem::path const folder = folder_.path() / (name + wide);
      run_ranks(std::vector<Group>{Group::alone()}, [&](Group one) { train(config, *data, one, {.folder = folder}); });
      summaries.push_back(result(nlohmann::json::parse(std::ifstream(folder / "summary.json"))));
      SavedClicks(open_model(folder, {}, task_kinds())).write(folder / "out", ExportFormat::kNpy);
    }
    EXPECT_EQ(summaries.at(0), summaries.at(1)) << name;
  }
}

// The last samples of the file are the test set. Prediction does not need the training data.
TEST_F(ClickTrainTest, SavedModelPredictsAndIsExported) {
  auto const summary = run("run", rich({"data.valid_share=0"}));
  std::filesystem::rename(clicks_, folder_.path() / "elsewhere.tsv");
  SavedClicks saved(open_model(folder_.path() / "run", {}, task_kinds()));
  std::vector<std::string> notices;
  std::vector<Prediction> predicted;
  saved.predict(folder_.path() / "elsewhere.tsv", notices, [&](std::span<float const> probabilities) {
    for (float p : probabilities) predicted.push_back({p, 0});
  });
  ASSERT_EQ(predicted.size(), 700U);
  std::ifstream lines(folder_.path() / "elsewhere.tsv");
  double loss = 0;
  std::size_t i = 0;
  for (std::string line; std::getline(lines, line); ++i) {
    predicted[i].label = line[0] == '1' ? 1 : 0;
    auto const p = static_cast<double>(predicted[i].probability);
    if (i >= 600) loss -= std::log(predicted[i].label == 1 ? p : 1 - p) / 100;
  }
  predicted.erase(predicted.begin(), predicted.begin() + 600);
  EXPECT_NEAR(area_under_curve(predicted).value(), summary.at("test").at("auc").get<double>(), 1e-12);
  EXPECT_NEAR(loss, summary.at("test").at("log_loss").get<double>(), 1e-6);

  auto const out = folder_.path() / "export";
  saved.write(out, ExportFormat::kFlat);
  auto const json = nlohmann::json::parse(std::ifstream(out / "model.json"));
  EXPECT_EQ(json.at("categories").size(), 26U);
  for (auto const& layer : json.at("dense")) {
    std::size_t const numbers = layer.at("shape")[0].get<std::size_t>() * layer.at("shape")[1].get<std::size_t>();
    EXPECT_EQ(std::filesystem::file_size(out / "dense" / (layer.at("name").get<std::string>() + ".bin")), 4 * numbers);
  }
  std::size_t const keys = std::filesystem::file_size(out / "rows" / "weights.keys.bin") / 8;
  EXPECT_GT(keys, 50U);
  EXPECT_EQ(std::filesystem::file_size(out / "rows" / "weights.values.bin"), 4 * keys);
  EXPECT_GT(std::filesystem::file_size(out / "frequent_values.bin"), 0U);
  expect_error([&] { saved.write(out, ExportFormat::kNpy); }, {"exists already", "choose a new folder"});
  expect_error([&] { open_model(folder_.path() / "none", {}, task_kinds()); }, {"has no checkpoint"});
  expect_error([&] { open_model(folder_.path() / "run", {"model.dim=8"}, task_kinds()); },
               {"model.dim", "another model"});
}

// Columns that the heading names otherwise than that of the training would be read by their places.
TEST_F(ClickTrainTest, PredictsNoColumnsInAnotherOrder) {
  std::string text = "click,age,price,city,shop\n", swapped = "click,price,age,city,shop\n";
  for (int i = 0; i < 40; ++i) {
    text += fmt::format("{},{},{},c{},s{}\n", i % 2, i, 100 + i, i % 3, i % 4);
    swapped += fmt::format("{},{},{},c{},s{}\n", i % 2, 100 + i, i, i % 3, i % 4);
  }
  std::filesystem::path const train = folder_.write("train.csv", text);
  run("named", small("fm", {"data.train=" + train.string(), "data.numeric_columns=2", "data.categorical_columns=2",
                            "train.batch_size=8"}));
  SavedClicks saved(open_model(folder_.path() / "named", {}, task_kinds()));
  std::vector<std::string> notices;
  std::size_t predicted = 0;
  auto const count = [&](std::span<float const> probabilities) { predicted += probabilities.size(); };
  saved.predict(train, notices, count);
  saved.predict(folder_.write("unnamed.csv", text.substr(text.find('\n') + 1)), notices, count);
  EXPECT_EQ(predicted, 80U);
  expect_error([&] { saved.predict(folder_.write("swapped.csv", swapped), notices, count); },
               {"has the columns click, price, age", "the training data has them in another order"});
}

// Rows of 5 floats are padded to 8, and reused memory has arbitrary values in the padding.
TEST_F(ClickTrainTest, PaddingOfRowsDoesNotAffectPredictions) {
  auto const summary = run("run", small("deepfm", {"model.dim=5"}));
  for (std::size_t size = 1024; size <= std::size_t{1} << 22; size *= 2) {
    Array<float> const used(Device::host(), size);
    memory::fill_bytes(*std::make_unique<Stream>(Device::host(), 1), used.data(), 0xFF, used.bytes());
  }
  SavedRun const saved = open_run(folder_.path() / "run", {});
  EXPECT_EQ(wait_evaluate_run(saved, Group::alone(), "test").json, summary.at("test"));
}

// Rows that no step has used for some time are removed, and other rows are kept.
TEST_F(ClickTrainTest, UnusedRowsExpire) {
  auto const rows_of = [&](std::string const& name, Settings settings) {
    settings.insert(settings.end(), {"train.epochs=2", "data.train=" + clicks_.string(), "model.name=fm"});
    run(name, settings);
    std::int64_t forgotten = 0;
    for (auto const& line : lines(name, "rows_forgotten")) forgotten += line.at("rows_forgotten").get<std::int64_t>();
    return forgotten;
  };
  EXPECT_EQ(rows_of("never", {}), 0);
  EXPECT_EQ(rows_of("late", {"train.expire_after=1000"}), 0);
  EXPECT_GT(rows_of("soon", {"train.expire_after=1", "model.numeric_features=buckets", "model.buckets=16"}), 10);
}

}  // namespace
}  // namespace gpups::trainer::saved_clicks_test
