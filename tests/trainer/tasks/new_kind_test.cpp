// SPDX-License-Identifier: Apache-2.0
// A kind of task that is in this file only: it has a setting of its own, trains on several ranks, resumes, is exported
// and finds neighbours. No code of the trainer knows it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trainer/config/task_kind.hpp"
#include "trainer/input/dictionary.hpp"
#include "trainer/run/saved_run.hpp"
#include "trainer/run/train.hpp"
#include "trainer/saved/saved_model.hpp"
#include "trainer/step/task.hpp"
#include "trainer/tasks/common/named_vectors.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer {
namespace {

using test::expect_error;

// Rows learn to be `target`: sample s is row s. A step halves the error, whose mean over 13 rows is the gradient.
struct TargetSettings {
  double target = 2;
};
struct TargetStep : TaskStep {
  std::vector<TableBatch> tables() const override { return {{.table = TableId{0}, .keys = keys}}; }
  std::int64_t forward_backward(Stream&, PreparedBatch const& prepared,
                                std::span<MatrixView<float const> const> rows) override {
    double loss = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      float const error = rows[0].row(prepared.positions(0).data()[i])[0] - target;
      errors.view().row(i)[0] = error;
      loss += std::floor(error * error * 0x1p30);
    }
    return static_cast<std::int64_t>(loss);
  }
  std::vector<TableGradients> gradients() const override { return {{.sources = errors}}; }
  TargetStep(std::vector<Key> const& all, Batch const& batch, float aim)
      : keys(Device::host(), batch.samples.size()), errors(Device::host(), keys.size(), 1), target(aim) {
    for (std::size_t i = 0; i < keys.size(); ++i) keys.data()[i] = all[batch.samples[i]];
  }
  Array<Key> keys;
  Matrix<float> errors;
  float target;
};
struct TargetTask : Task {
  TargetTask(std::vector<Key> const& all, Config const& config) : keys(all), config_(config) {}
  std::vector<TableOptions> tables() const override {
    return {{.name = "rows", .dim = 1, .optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 6.5F}}};
  }
  std::unique_ptr<TaskStep> prepare(Stream&, Batch const& batch) override {
    return std::make_unique<TargetStep>(keys, batch, static_cast<float>(config_.settings<TargetSettings>().target));
  }
  Metrics wait_evaluate(Stream&, Store&, std::string_view) override { return {}; }
  std::vector<Key> const& keys;
  Config config_;
};
struct TargetData : Data {
  TargetData() {
    for (char c = 'a'; c <= 'z'; ++c) names.add(std::string(1, c));
  }
  std::uint64_t samples() const override { return names.size(); }
  std::string_view noun() const override { return "row"; }
  bool has(std::string_view) const override { return false; }
  std::uint64_t digest() const override { return 1; }
  std::vector<std::string> notices() const override { return {}; }
  std::string summary() const override { return "26 rows"; }
  nlohmann::json counts() const override { return {{"rows", names.size()}}; }
  NamedRows named_rows() const override { return {&names, names.size()}; }
  MemoryPlan memory_plan(Config const&, Device, StepSizes const&) const override { return {}; }
  std::unique_ptr<Task> make_task(Config const& config, TaskContext const&) const override {
    return std::make_unique<TargetTask>(names.keys(), config);
  }
  Dictionary names{"row"};
};
struct TargetKind : TaskKind {
  std::vector<std::string> readers() const override { return {"targets"}; }
  std::vector<std::string> models() const override { return {"row"}; }
  Config defaults() const override {
    Config config;
    config.model.name = "row";
    config.task.values = TargetSettings{};
    return config;
  }
  std::vector<Field> fields() const override {
    return {FieldBuilder("model", "target", in_task<&TargetSettings::target>, "what rows learn")
                .range(-10, 10)
                .fixed_on_resume()};
  }
  std::unique_ptr<Data const> read(Config const&) const override { return std::make_unique<TargetData>(); }
  bool export_model(SavedModel const& model, std::filesystem::path const& folder, ModelFormat format) const override {
    TargetData const data;
    export_named_vectors(model, data, data.names, nullptr, folder, format);
    return true;
  }
};

class NewKind : public testing::Test {
 protected:
  NewKind() {
    kinds_.assign(task_kinds().begin(), task_kinds().end());
    kinds_.push_back(&kind_);
  }

  Config config(std::string const& text, std::vector<SettingOverride> settings = {}) const {
    return parse_config("[data]\nreader = 'targets'\n" + text, "run.toml", folder_.path(), settings, kinds_);
  }
  nlohmann::json run(std::string const& name, int ranks, std::vector<SettingOverride> settings, bool resume = false) {
    settings.insert(settings.end(), {"train.batch_size=13", "run.report_every=1", "run.threads=1", "run.device=host"});
    Config const c = config("", settings);
    auto const data = read_data(c);
    run_ranks(Group::threads(ranks),
              [&](Group one) { train(c, *data, one, {.folder = folder_.path() / name, .resume = resume}); });
    return nlohmann::json::parse(std::ifstream(folder_.path() / name / "summary.json"));
  }

  // The kinds, if rows of this one are not exported.
  TaskKinds without_export() {
    kinds_.back() = &silent_;
    return kinds_;
  }

  struct SilentKind : TargetKind {
    bool export_model(SavedModel const&, std::filesystem::path const&, ModelFormat) const override { return false; }
  };
  test::TemporaryFolder folder_;
  TargetKind kind_;
  SilentKind silent_;
  std::vector<TaskKind const*> kinds_;
};

TEST_F(NewKind, HasSettingsOfItsOwn) {
  EXPECT_EQ(config("").settings<TargetSettings>().target, 2);
  Config const c = config("[model]\ntarget = 3\n");
  EXPECT_EQ(c.settings<TargetSettings>().target, 3);
  EXPECT_THAT(resolved(c), testing::HasSubstr("target = 3.0"));
  EXPECT_EQ(resume_differences(config(""), c).front().key, "model.target");
  expect_error([&] { config("[model]\ntarget = 11\n"); }, {"model.target is 11", "out of range"});
  expect_error([&] { config("[model]\nwindow = 3\n"); },
               {"model.window has no effect here (only data.reader = \"text\" or \"edges\" uses it)"});
  expect_error([&] { parse_config("[model]\ntarget = 3\n", "run.toml", "/", {}, kinds_); },
               {"only data.reader = \"targets\" uses it"});
  expect_error([&] { parse_config("[model]\ntarget = 3\n", "run.toml", "/"); }, {"there is no key 'target'"});
  for (char const* setting : {"data.reader=targets", "data.reader='targets'", "data.reader=\"targets\" # mine"}) {
    Config const changed = parse_config("[model]\nnegatives = 3\nname = 'complex'\n", "run.toml", "/",
                                        {setting, "model.name=row", "model.target=5"}, kinds_);
    EXPECT_EQ(changed.settings<TargetSettings>().target, 5) << setting;
  }
}

TEST_F(NewKind, TrainsResumesAndIsExported) {
  auto const once = run("once", 1, {"train.steps=20", "model.target=3"});
  EXPECT_LT(once.at("loss"), 1e-3);
  run("parts", 2, {"train.steps=10", "model.target=3"});
  auto const parts = run("parts", 1, {"train.steps=20", "model.target=3"}, true);
  EXPECT_EQ(parts.at("table_hash"), once.at("table_hash"));
  expect_error([&] { run("parts", 1, {"train.steps=30", "model.target=4"}, true); }, {"model.target"});

  auto const folder = folder_.path() / "once";
  std::vector<std::string> notices;
  EXPECT_THAT(nearest_in_run(open_run(folder, {}, kinds_), {{.name = "c"}}, 2, notices),
              testing::HasSubstr("c\n  1.000  "));
  export_run(folder, {}, folder_.path() / "exported", ModelFormat::kNpy, kinds_);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "exported" / "rows.tsv"));
  expect_error([&] { recommend_in_run(folder, {}, {{.name = "c"}}, 2, notices, kinds_); }, {"has no users and items"});
  expect_error([&] { export_run(folder, {}, folder_.path() / "text", ModelFormat::kWord2vec, without_export()); },
               {"use --format npy"});
  expect_error([&] { export_run(folder, {}, folder_.path() / "text", ModelFormat::kNpy, without_export()); },
               {"such models are not exported"});
  expect_error([&] { open_run(folder, {}); }, {"data.reader is \"targets\" (unknown)"});
}

}  // namespace
}  // namespace gpups::trainer
