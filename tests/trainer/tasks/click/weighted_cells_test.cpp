// SPDX-License-Identifier: Apache-2.0
// Values of weighted categories with another separator than '|' are an error; what may be one value is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trainer/tasks/click/click_data.hpp"
#include "trainer/tasks/click/click_kind.hpp"
#include "trainer/tasks/click/text/convert.hpp"

namespace gpups::trainer::weighted_cells_test {
namespace {

using test::expect_error;

class WeightedCells : public testing::Test {
 protected:
  // Reads samples with these cells as C2, between tabs, or in another form.
  void read(std::vector<std::string> const& cells, std::string_view begin = "1\t3\tabc\t", std::string_view end = "\n",
            std::string const& heading = "") {
    std::string text = heading;
    for (std::string const& cell : cells) text.append(begin).append(cell).append(end);
    Config config = click_kind().defaults();
    config.data.folder = folder_.path().string();
    config.data.train = folder_.write("clicks", text).filename().string();
    config.data.valid_share = config.data.test_share = 0;
    config.settings<ClickSettings>().numeric_columns = 1;
    config.settings<ClickSettings>().categorical_columns = 2;
    config.settings<ClickSettings>().weighted = {"C2"};
    notices_ = ClickData(config).notices();
  }
  bool says_single() const {
    return std::any_of(notices_.begin(), notices_.end(), [](std::string const& notice) {
      return notice.find("no cell of C2 has several values, although") != notice.npos;
    });
  }

  test::TemporaryFolder folder_;
  std::vector<std::string> notices_;
};

TEST_F(WeightedCells, OtherSeparatorsAreErrors) {
  for (auto const& [cell, sign] : std::initializer_list<std::pair<char const*, char const*>>{
           {"a:1,b:2", "','"}, {"a:1 b:2", "a blank"}, {"a:1;b:2", "';'"}, {"a:1, b:-0.5, c:2", "','"}}) {
    SCOPED_TRACE(cell);
    expect_error(
        [&, text = cell] {
          read({text, "c:3", text, "", "d"});
        },
        {"clicks has values separated by ", sign, " in C2", cell, "'|'", "data.weighted"});
  }
  expect_error([&] { read({"a:1,b:2", "c:3,d:4"}, "1,3,abc,\"", "\"\n"); }, {"separated by ','"});
  expect_error(
      [&] {
        read({"a:1;b:2", "c:3;d:4"}, "1,3,abc,", "\n", "click,price,site,words\n");
      },
      {"separated by ';'"});
}

TEST_F(WeightedCells, ConvertHasTheError) {
  auto const text = folder_.write("text", "1\t3\tabc\ta:1,b:2\n0\t3\tabc\tc:1,b:2\n");
  auto const binary = folder_.path() / "binary";
  expect_error([&] { convert_samples(text, binary, make_layout(1, 2, {}, {"C2"}), {}); }, {"separated by ',' in C2"});
  EXPECT_FALSE(std::filesystem::exists(binary));
  EXPECT_EQ(convert_samples(text, binary, make_layout(1, 2), {}).samples, 2U);
}

TEST_F(WeightedCells, NamesMayHaveTheirSigns) {
  for (auto const& cells : std::vector<std::vector<std::string>>{{"a:1,b:2|c:1", "a:1,b:2", "a:1,b:2"},
                                                                 {"a:1,b:2", "c:1", "d:2"},
                                                                 {"Smith, Jo:1", "Doe, Al:2", "Ray, Bo:1"},
                                                                 {"12:30,x:1", "x y:1", "x,y"}}) {
    EXPECT_NO_THROW(read(cells)) << cells.front();
    EXPECT_EQ(says_single(), cells.front().find('|') == std::string::npos) << cells.front();
  }
}

TEST_F(WeightedCells, NumbersAfterEqualSignsAreErrors) {
  for (auto const& cells : std::vector<std::vector<std::string>>{{"a=0.5|b=2", "c=1"}, {"a=1", "b=2", "c"}}) {
    expect_error([&] { read(cells); }, {"clicks has numbers after '=' in C2", cells.front().c_str(), "write ':'"});
  }
  for (auto const& cells : std::vector<std::vector<std::string>>{{"a=0.5:2|b=2", "c=1"}, {"a=1", "b", "c"}}) {
    EXPECT_NO_THROW(read(cells)) << cells.front();
  }
}

TEST_F(WeightedCells, BlanksAroundBarsAreSaid) {
  auto const says = [this](std::vector<std::string> const& cells, std::string_view begin, std::string_view end) {
    read(cells, begin, end);
    return std::any_of(notices_.begin(), notices_.end(), [](std::string const& notice) {
      return notice.find("has blanks around '|' in C2") != notice.npos;
    });
  };
  EXPECT_TRUE(says({"comedy|drama", "comedy | drama"}, "1\t3\tabc\t", "\n"));
  EXPECT_THAT(notices_, testing::Contains(testing::HasSubstr("as in 'comedy | drama': they are part of values, and "
                                                             "'comedy ' is another value than 'comedy'")));
  EXPECT_TRUE(says({"comedy:1| drama:2"}, "1,3,abc,", "\n"));
  EXPECT_FALSE(says({"sci fi|drama", "a b:1|c", ""}, "1\t3\tabc\t", "\n"));
  EXPECT_FALSE(says({"sci fi|drama"}, "1, 3, a | b, ", "\n"));
}

}  // namespace
}  // namespace gpups::trainer::weighted_cells_test
