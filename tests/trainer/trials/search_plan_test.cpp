// SPDX-License-Identifier: Apache-2.0
// The settings of trials are in their ranges, and the stages of successive halving cost about the same.
#include "trainer/trials/search_plan.hpp"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trainer/tasks/task_kinds.hpp"
#include "trainer/trials/search_record.hpp"

namespace gpups::trainer::search_plan_test {
namespace {

using test::expect_error;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(SearchPlan, DrawsSettingsOfTrials) {
  test::TemporaryFolder folder;
  auto const file = folder.write("search.toml",
                                 "[search]\ntrials = 400\nseed = 3\n[search.settings]\n"
                                 "optimizer.learning_rate = {from = 0.01, to = 1, log = true}\n"
                                 "model.dim = {from = 4, to = 6}\nmodel.name = [\"complex\", \"distmult\"]\n");
  SearchPlan const plan = load_search_plan(file, task_kinds());
  EXPECT_EQ(plan.trials, 400);
  EXPECT_THAT(plan.settings_of(0), IsEmpty());
  std::map<std::string, int> seen;
  int small_rates = 0;
  for (std::int64_t trial = 1; trial < plan.trials; ++trial) {
    for (std::string const& setting : plan.settings_of(trial)) {
      std::string const prefix = "optimizer.learning_rate=";
      if (!setting.starts_with(prefix)) {
        ++seen[setting];
        continue;
      }
      double const rate = std::stod(setting.substr(prefix.size()));
      EXPECT_GE(rate, 0.01);
      EXPECT_LE(rate, 1);
      small_rates += rate < 0.1 ? 1 : 0;
    }
  }
  EXPECT_NEAR(small_rates, 200, 50);  // half of the logarithmic range
  EXPECT_EQ(seen.size(), 5U);
  for (auto const& [setting, count] : seen) EXPECT_GT(count, 60) << setting;
  SearchPlan other = plan;
  EXPECT_EQ(other.settings_of(7), plan.settings_of(7));
  other.seed = 4;
  EXPECT_NE(other.settings_of(7), plan.settings_of(7));
}

TEST(SearchPlan, NumbersAreAsShortAsInTheFile) {
  test::TemporaryFolder folder;
  auto const file = folder.write("search.toml", "[search]\n[search.settings]\nmodel.n3 = [0.1, 0.2, 1.0, 3e-5]\n");
  EXPECT_THAT(load_search_plan(file, task_kinds()).settings.at(0).choices, ElementsAre("0.1", "0.2", "1.0", "3e-05"));
}

TEST(SearchPlan, StagesHaveFewerTrialsWithMoreTime) {
  EXPECT_THAT(stages_of(27, 3, 27),
              ElementsAre(SearchStage{27, 1}, SearchStage{9, 3}, SearchStage{3, 9}, SearchStage{1, 27}));
  EXPECT_THAT(stages_of(20, 3, 20), ElementsAre(SearchStage{20, 3}, SearchStage{6, 7}, SearchStage{2, 20}));
  EXPECT_THAT(stages_of(100, 10, 5), ElementsAre(SearchStage{100, 5}));  // too short to be divided
  EXPECT_THAT(stages_of(1, 2, 8), ElementsAre(SearchStage{1, 8}));
}

TEST(SearchRecord, KeepsResultsAndDropsAnIncompleteLine) {
  test::TemporaryFolder folder;
  nlohmann::json const what{{"search", "x"}};
  {
    SearchRecord record(folder.path(), what);
    record.add(0, 3, {.quality = 0.5, .text = "mrr 0.5"});
    record.add(1, 3, {.error = "no memory"});
    record.add(2, 3, {.quality = 0.75, .text = "mrr 0.75"});
    record.add(3, 3, {.quality = 0.75, .text = "mrr 0.75"});
  }
  std::ofstream(folder.path() / "search.jsonl", std::ios::app) << "{\"trial\":4,\"bud";
  SearchRecord record(folder.path(), what);
  ASSERT_NE(record.find(0, 3), nullptr);
  EXPECT_EQ(record.find(0, 3)->text, "mrr 0.5");
  EXPECT_EQ(record.find(4, 3), nullptr);
  EXPECT_EQ(record.find(0, 9), nullptr);
  EXPECT_TRUE(record.find(1, 3)->has_failed());
  EXPECT_THAT(best_trials(record, {0, 1, 2, 3}, 3, 2), ElementsAre(2, 3));
  EXPECT_THAT(best_trials(record, {0, 1}, 3, 2), ElementsAre(0));
  record.add(4, 3, {.quality = 1});
  record.add(5, 3, {.error = "killed", .of_environment = true});
  EXPECT_THAT(record.failures_of_environment(), ElementsAre("trial 5: killed"));
  EXPECT_EQ(SearchRecord(folder.path(), what).find(5, 3), nullptr) << "it runs again";
  EXPECT_NE(SearchRecord(folder.path(), what).find(4, 3), nullptr);
  expect_error([&] { SearchRecord(folder.path(), {{"search", "y"}}); }, {"another configuration"});
  std::ofstream(folder.path() / "search.jsonl", std::ios::app) << "nonsense\n";
  expect_error([&] { SearchRecord(folder.path(), what); }, {"search.jsonl:8 is damaged"});
}

}  // namespace
}  // namespace gpups::trainer::search_plan_test
