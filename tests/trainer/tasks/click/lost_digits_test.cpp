// SPDX-License-Identifier: Apache-2.0
// Numbers whose differences are lost in 32 bits are said, and ordinary columns are not.
#include "trainer/tasks/click/lost_digits.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/temporary_folder.hpp"
#include "trainer/base/random.hpp"
#include "trainer/tasks/click/click_kind.hpp"

namespace gpups::trainer::lost_digits_test {
namespace {

using testing::AllOf, testing::Contains, testing::Each, testing::HasSubstr, testing::Not;

class LostDigits : public testing::Test {
 protected:
  // number: of line i, and of random bits.
  std::vector<std::string> notices_of(std::function<std::string(std::uint64_t, std::uint64_t)> const& number,
                                      std::string const& heading = "", std::string const& features = "log") const {
    std::string text = heading;
    for (std::uint64_t i = 0; i < 3000; ++i) {
      text += fmt::format("{}\t{}\t{}\tc{}\n", i % 2, number(i, random_bits(1, i)), i % 7, i % 5);
    }
    Config config = click_kind().defaults();
    config.data.folder = folder_.path().string();
    config.data.train = folder_.write("clicks", text).filename().string();
    config.data.valid_share = config.data.test_share = 0;
    config.settings<ClickSettings>().numeric_columns = 2;
    config.settings<ClickSettings>().categorical_columns = 1;
    config.settings<ClickSettings>().numeric_features = features;
    return ClickData(config).notices();
  }

  test::TemporaryFolder folder_;
};

std::string whole(std::uint64_t number) { return fmt::format("{}", number); }

TEST_F(LostDigits, OfDatesAndTimesAreSaid) {
  std::pair<char const*, std::function<std::string(std::uint64_t, std::uint64_t)>> const columns[] = {
      {"dates of a month", [](auto, auto bits) { return whole(20240301 + bits % 31); }},
      {"dates of a year",
       [](auto, auto bits) { return whole(20240000 + 100 * (1 + bits % 12) + 1 + (bits >> 8) % 28); }},
      {"hours of a day", [](auto, auto bits) { return whole(14102100 + bits % 24); }},
      {"hours of ten days", [](auto, auto bits) { return whole(14102100 + 100 * (bits % 10) + (bits >> 8) % 24); }},
      {"seconds of an hour", [](auto, auto bits) { return whole(1700000000 + bits % 3600); }},
      {"seconds of a day", [](auto, auto bits) { return whole(1700000000 + bits % 86400); }},
      {"milliseconds of an hour", [](auto, auto bits) { return whole(1700000000000 + bits % 3600000); }},
      {"negative", [](auto, auto bits) { return "-" + whole(20240301 + bits % 31); }},
      {"with missing ones", [](auto i, auto bits) { return i % 3 == 0 ? "" : whole(20240301 + bits % 31); }},
      {"with zeros", [](auto i, auto bits) { return i % 3 == 0 ? "0" : whole(20240301 + bits % 31); }}};
  for (auto const& [name, number] : columns) {
    SCOPED_TRACE(name);
    EXPECT_THAT(notices_of(number), Contains(AllOf(HasSubstr("the numbers of I1 have "), HasSubstr("logarithm"),
                                                   HasSubstr("subtract the smallest number"))));
    EXPECT_THAT(notices_of(number, "", "buckets"), Each(Not(HasSubstr("logarithm"))));
  }
  EXPECT_THAT(notices_of([](auto, auto bits) { return whole(20240301 + bits % 31); }, "label\tday\tage\tsite\n"),
              Contains(HasSubstr("the numbers of 'day' have 17 different values, and 2 different logarithms, which")));
  EXPECT_THAT(notices_of([](auto, auto bits) { return whole(1700000000000 + bits % 60000); }),
              Contains(HasSubstr("all numbers of I1 are 1.7e+12 (numbers and their logarithms have 32 bits")));
}

TEST_F(LostDigits, OfOrdinaryColumnsAreNotSaid) {
  std::pair<char const*, std::function<std::string(std::uint64_t, std::uint64_t)>> const columns[] = {
      {"counts", [](auto, auto bits) { return whole(bits % 100 * (bits >> 8) % 1000); }},
      {"large counts", [](auto, auto bits) { return whole(std::uint64_t{1} << bits % 50); }},
      {"ages", [](auto, auto bits) { return whole(18 + bits % 60); }},
      {"years", [](auto, auto bits) { return whole(1990 + bits % 35); }},
      {"two years", [](auto, auto bits) { return whole(2023 + bits % 2); }},
      {"shares", [](auto, auto bits) { return fmt::format("{:.6f}", static_cast<double>(bits % 1000) * 1e-6); }},
      {"prices", [](auto, auto bits) { return fmt::format("{}.99", 100 + bits % 1000); }},
      {"close prices", [](auto, auto bits) { return whole(1000000 + bits % 100); }},
      {"ids", [](auto, auto bits) { return whole(bits % 2000000000); }},
      {"seconds of a year", [](auto, auto bits) { return whole(1700000000 + bits % 31536000); }},
      {"one number", [](auto, auto) { return std::string("1000000"); }},
      {"none", [](auto, auto) { return std::string(); }},
      {"latitudes", [](auto, auto bits) { return fmt::format("40.{:04}", bits % 10000); }}};
  for (auto const& [name, number] : columns) {
    SCOPED_TRACE(name);
    EXPECT_THAT(notices_of(number), Each(Not(HasSubstr("seven digits"))));
  }
}

}  // namespace
}  // namespace gpups::trainer::lost_digits_test
