// SPDX-License-Identifier: Apache-2.0
// What errors suggest in place of names that do not exist, and numbers in configurations.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/expect_error.hpp"
#include "trainer/base/edit_distance.hpp"
#include "trainer/config/config.hpp"
#include "trainer/tasks/click/click_kind.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer::unknown_keys_test {
namespace {

using test::expect_error;

Config parse(std::string const& text, std::vector<SettingOverride> const& overrides = {}) {
  return parse_config(text, "run.toml", "/data", overrides);
}

TEST(EditDistance, CountsInsertionsDeletionsAndReplacements) {
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("same", "same"), 0U);
  EXPECT_EQ(edit_distance("dlmr", "dlrm"), 1U);
}

TEST(EditDistance, SuggestsOnlyWhatIsClose) {
  std::vector<std::string> const words{"epochs", "batch_size", "seed", "test", "weighted", "dim", "l2", "negatives"};
  for (auto const& [word, close] : {std::pair("epoch", "epochs"),
                                    {"bacth_size", "batch_size"},
                                    {"BatchSize", "batch_size"},
                                    {"dims", "dim"},
                                    {"neg", "negatives"},
                                    {"L2", "l2"},
                                    {"seeed", "seed"}}) {
    EXPECT_EQ(close_word(word, words), close) << word;
  }
  for (char const* word : {"delimiter", "sep", "lr", "header", "x", "", "tests_of_everything"}) {
    EXPECT_EQ(close_word(word, words), std::nullopt) << word;
  }
  EXPECT_EQ(suggestion("delimiter", {"a", "b"}, "the keys are"), "the keys are a, b");
}

TEST(Config, UnknownKeysAreExplained) {
  expect_error([] { parse("", {"data.sep=x"}); }, {"there is no key 'sep' in [data]", "did you mean data.separator?"});
  expect_error([] { parse("", {"data.delimiter=x"}); }, {"did you mean data.separator?"});
  expect_error([] { parse("", {"data.header=true"}); }, {"did you mean data.heading?"});
  expect_error([] { parse("", {"train.lr=1"}); }, {"did you mean optimizer.learning_rate?"});
  expect_error([] { parse("", {"data.qqqq=1"}); }, {"the keys of [data] are reader, ", "separator"});
  expect_error([] { parse("", {"qqqq.dim=1"}); }, {"the sections are data, model"});
  expect_error([] { parse("learning_rate = 0.1\n"); }, {"outside of a section", "move it below [optimizer]"});
  expect_error([] { parse("qqqq = 0.1\n"); }, {"move it below one of [data], [model]"});
  auto const message = [] {
    try {
      parse("[optimizer]\nkind = 'qqqq'\n");
    } catch (Error const& error) {
      return std::string(error.what());
    }
    return std::string();
  }();
  EXPECT_NE(message.find("use one of sgd, "), std::string::npos) << message;
  EXPECT_EQ(message.find("did you mean"), std::string::npos) << message;
}

TEST(Config, NumbersThatAreTooSmallAreZero) {
  for (char const* tiny : {"1e-400", "0.25e-9999", "-1e-400"}) {
    EXPECT_EQ(parse(fmt::format("[optimizer]\nl2 = {} # 3e-500\n[model]\ndim = 8\n", tiny)).optimizer.l2, 0) << tiny;
    EXPECT_EQ(parse("", {fmt::format("optimizer.l2={}", tiny)}).optimizer.l2, 0) << tiny;
  }
  EXPECT_EQ(parse("", {"optimizer.l2=1e-310"}).optimizer.l2, 1e-310);
  expect_error([] { parse("[optimizer]\nl2 = 1e400\n"); }, {"run.toml:2"});
  expect_error([] { parse("", {"optimizer.l2=1e400"}); }, {"optimizer.l2"});
}

// Code that reads a key's value without asking whether it has an effect finds its default.
TEST(Config, KeysThatOverridesLeaveWithoutAnEffectHaveTheirDefaults) {
  std::string const file =
      "[data]\nreader = 'clicks'\ntrain = 'x'\n[model]\nname = 'dcnv2'\nwide = true\ncross_layers = 5\n"
      "dropout = 0.3\n[linear]\nkind = 'ftrl'\nl1 = 0.5\n";
  for (char const* name : {"deepfm", "logistic", "dlrm"}) {
    Config const config = parse(file, {fmt::format("model.name={}", name)});
    auto const& settings = config.settings<ClickSettings>();
    EXPECT_EQ(settings.wide, std::string(name) == "dlrm");
    EXPECT_EQ(settings.cross_layers, ClickSettings{}.cross_layers);
    EXPECT_EQ(settings.dropout, std::string(name) == "logistic" ? ClickSettings{}.dropout : .3);
    EXPECT_EQ(settings.linear.l1, .5);
    EXPECT_EQ(resolved(parse(resolved(config))), resolved(config));
  }
  Config const sgd = parse(file, {"model.name=deepfm", "linear.kind=sgd"});
  EXPECT_EQ(sgd.settings<ClickSettings>().linear.l1, LinearConfig{}.l1);
  expect_error([&] { parse(file, {"model.name=deepfm", "model.wide=true"}); }, {"model.wide has no effect here"});
}

}  // namespace
}  // namespace gpups::trainer::unknown_keys_test
