// SPDX-License-Identifier: Apache-2.0
// Samples with values of categories that training has not seen are said.
#include "trainer/tasks/click/unknown_values.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "tests/trainer/run/train_fixture.hpp"
#include "trainer/run/saved_run.hpp"
#include "trainer/tasks/click/click_kind.hpp"
#include "trainer/tasks/click/saved_clicks.hpp"
#include "trainer/tasks/task_kinds.hpp"

namespace gpups::trainer::unknown_values_test {
namespace {

using testing::AllOf, testing::Contains, testing::Each, testing::HasSubstr, testing::Not;

// Returns lines of a label, a number, a site and an app, which are the texts of their numbers.
std::string lines_of(
    int count, std::function<std::string(int)> const& site,
    std::function<std::string(int)> const& app = [](int i) { return fmt::format("a{}", i % 3); }) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}\t{}\t{}\t{}\n", i % 2, i % 50, site(i), app(i));
  return text;
}
std::string whole(int i) { return fmt::format("{}", 100 + i % 30); }
std::string fraction(int i) { return fmt::format("{}.0", 100 + i % 30); }

class UnknownValues : public testing::Test {
 protected:
  // change: of other settings.
  std::vector<std::string> notices_of(
      std::string const& train, std::string const& test,
      std::function<void(ClickSettings&)> const& change = [](ClickSettings&) {}) {
    folder_.write("train", train);
    folder_.write("test", test);
    Config config = click_kind().defaults();
    config.data.folder = folder_.path().string();
    config.data.train = "train", config.data.test = "test";
    config.settings<ClickSettings>().numeric_columns = 1;
    config.settings<ClickSettings>().categorical_columns = 2;
    change(config.settings<ClickSettings>());
    return ClickData(config).notices();
  }

  test::TemporaryFolder folder_;
};

TEST_F(UnknownValues, OfATestAreSaid) {
  EXPECT_THAT(notices_of(lines_of(2500, fraction), lines_of(500, whole)),
              Contains(AllOf(HasSubstr("500 of 500 samples of the test have a value of C1 that training has not seen:"),
                             HasSubstr("105.0 is another value than 105"))));
  EXPECT_THAT(notices_of(lines_of(2500, whole), lines_of(500, whole)), Each(Not(HasSubstr("not seen"))));
  // Some of the values are written alike.
  auto const mixed = [](int i) { return i % 5 == 0 ? whole(i / 5) : fraction(i); };
  EXPECT_THAT(notices_of(lines_of(2500, whole), lines_of(500, mixed)),
              Contains(HasSubstr("400 of 500 samples of the test have a value of C1")));
  auto const mostly_alike = [](int i) { return i % 5 != 0 ? whole(i) : fraction(i); };
  EXPECT_THAT(notices_of(lines_of(2500, whole), lines_of(500, mostly_alike)), Each(Not(HasSubstr("not seen"))));
}

TEST_F(UnknownValues, HaveTheNamesOfTheHeading) {
  std::string const heading = "click\tage\tsite\tapp\n";
  auto const other_app = [](int i) { return fmt::format("A{}", i % 3); };
  EXPECT_THAT(notices_of(heading + lines_of(2500, fraction), heading + lines_of(500, whole)),
              Contains(HasSubstr("samples of the test have a value of 'site' that training has not seen")));
  EXPECT_THAT(notices_of(heading + lines_of(2500, fraction), heading + lines_of(500, whole, other_app)),
              Contains(HasSubstr("a value of 'site' that training has not seen, and many of 'app': ")));
}

TEST_F(UnknownValues, OfColumnsThatHaveNewOnesAreUsual) {
  auto const user = [](int i) { return fmt::format("u{}", i); };
  auto const new_user = [](int i) { return fmt::format("u{}", 10'000 + i); };
  EXPECT_THAT(notices_of(lines_of(2500, user), lines_of(500, new_user)), Each(Not(HasSubstr("not seen"))));
  EXPECT_THAT(notices_of(lines_of(2500, whole), lines_of(2, fraction)), Each(Not(HasSubstr("not seen"))));
}

TEST_F(UnknownValues, AreThoseOfAllColumnsThatShareRows) {
  auto const app = [](int i) { return fraction(i); };
  std::string const train = lines_of(2500, whole, app), test = lines_of(500, fraction, app);
  EXPECT_THAT(notices_of(train, test), Contains(HasSubstr("have a value of C1")));
  EXPECT_THAT(notices_of(train, test, [](ClickSettings& click) { click.shared = {"C1,C2"}; }),
              Each(Not(HasSubstr("not seen"))));
}

TEST_F(UnknownValues, OfListsAreCountedIfNoOtherIsInTheCell) {
  auto const list = [](int i) { return fraction(i) + "|" + whole(i + 1); };
  auto const other_list = [](int i) { return fraction(i) + "|" + fraction(i + 1); };
  auto const lists = [](ClickSettings& click) { click.multi_hot = {"C1"}; };
  EXPECT_THAT(notices_of(lines_of(2500, whole), lines_of(500, list), lists), Each(Not(HasSubstr("not seen"))));
  EXPECT_THAT(notices_of(lines_of(2500, whole), lines_of(500, other_list), lists),
              Contains(HasSubstr("500 of 500 samples of the test have only values of C1")));
}

// The last samples of a file that is sorted by a category are held out.
TEST_F(UnknownValues, OfSharesAreSaid) {
  auto const sorted = [](int i) { return fmt::format("s{}", i / 100); };
  folder_.write("train", lines_of(2000, sorted));
  Config config = click_kind().defaults();
  config.data.folder = folder_.path().string();
  config.data.train = "train";
  config.data.test_share = 0.1, config.data.valid_share = 0.1;
  config.settings<ClickSettings>().numeric_columns = 1;
  config.settings<ClickSettings>().categorical_columns = 2;
  EXPECT_THAT(ClickData(config).notices(), AllOf(Contains(HasSubstr("200 of 200 samples of the test have a value")),
                                                 Contains(HasSubstr("200 of 200 samples of the validation have"))));
}

// More than are compared: blocks of the training that are not read may have the values.
TEST_F(UnknownValues, AreFoundInSomeOfManySamples) {
  auto const site = [](int i) { return fmt::format("{}", i % 5000); };
  auto const other = [](int i) { return fmt::format("{}.0", i % 5000); };
  std::string const train = lines_of(600'000, site);
  EXPECT_THAT(notices_of(train, lines_of(20'000, site)), Each(Not(HasSubstr("not seen"))));
  EXPECT_THAT(notices_of(train, lines_of(20'000, other)),
              Contains(HasSubstr("4096 of 4096 samples of the test have a value of C1 that 200640 of the training "
                                 "samples, of 600000, have not seen")));
}

class PredictedUnknownValues : public RunTest {
 protected:
  PredictedUnknownValues() : RunTest({"data.reader=clicks", "data.test_share=0"}) {}
};

TEST_F(PredictedUnknownValues, AreSaid) {
  std::string const heading = "click\tage\tsite\tapp\n";
  auto const write = [&](std::string const& name, std::string const& text) { return folder_.write(name, text); };
  auto const file = write("a", heading + lines_of(400, whole));
  for (Settings const& more : {Settings{"model.name=logistic"}, Settings{"model.name=fm"},
                               Settings{"model.name=logistic", "model.min_count=2"}}) {
    Settings settings{"data.train=" + file.string(), "data.numeric_columns=1", "data.categorical_columns=2"};
    settings.insert(settings.end(), more.begin(), more.end());
    run(more.back(), settings);
    SavedClicks saved(open_model(folder_.path() / more.back(), {}, task_kinds()));
    auto const notices_of = [&](std::string const& text) {
      std::vector<std::string> notices;
      saved.predict(write("p", heading + text), notices, [](std::span<float const>) {});
      return notices;
    };
    EXPECT_THAT(notices_of(lines_of(5, fraction)),
                Contains(HasSubstr("5 of 5 samples have no value of 'site' that has a row in the model (training has "
                                   "not seen them, or too rarely): ")))
        << more.back();
    EXPECT_THAT(notices_of(lines_of(5, whole)), Each(Not(HasSubstr("has a row")))) << more.back();
    auto const half = [](int i) { return i % 2 == 0 ? fraction(i) : whole(i); };
    auto const third = [](int i) { return i % 3 == 0 ? fraction(i) : whole(i); };
    EXPECT_THAT(notices_of(lines_of(40, half)), Contains(HasSubstr("20 of 40 samples have no value of 'site'")));
    EXPECT_THAT(notices_of(lines_of(40, third)), Each(Not(HasSubstr("has a row")))) << more.back();
    // Of few samples, if nothing is known.
    auto const other_app = [](int i) { return fmt::format("A{}", i % 3); };
    for (int const few : {1, 2}) {
      EXPECT_THAT(notices_of(lines_of(few, fraction, other_app)),
                  Contains(HasSubstr(fmt::format("{0} of {0} sample", few))))
          << more.back();
      EXPECT_THAT(notices_of(lines_of(few, fraction)), Each(Not(HasSubstr("has a row")))) << more.back();
    }
  }
}

}  // namespace
}  // namespace gpups::trainer::unknown_values_test
