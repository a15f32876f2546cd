// SPDX-License-Identifier: Apache-2.0
// A kind of task that is in tests only: it has a setting of its own, trains on several ranks, resumes, is exported and
// finds neighbours. No code of the trainer knows it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/trainer/tasks/target_kind.hpp"
#include "trainer/run/saved_run.hpp"
#include "trainer/run/train.hpp"
#include "trainer/saved/saved_model.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer {
namespace {

using test::expect_error;

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
    bool export_model(SavedModel const&, std::filesystem::path const&, ModelFormat,
                      std::vector<std::string>&) const override {
      return false;
    }
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
