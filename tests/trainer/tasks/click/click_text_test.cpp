// SPDX-License-Identifier: Apache-2.0
// The reader of click data agrees with a slow reader. Lines that are not samples are counted and reported.
#include <fmt/format.h>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/trainer/tasks/click/click_fixture.hpp"
#include "trainer/tasks/click/block.hpp"
#include "trainer/tasks/click/text/text_rows.hpp"

namespace gpups::trainer::click_text_test {
namespace {

using test::expect_error;
using test::expect_sample;
using test::joined;
using test::oracle_sample;
using test::small_layout;
using test::SyntheticText;
using test::TemporaryFolder;

struct Read {
  SampleBatch samples;
  std::uint64_t digest = 0;
  std::vector<std::string> notices;
};

Read read(Layout const& layout, std::string_view text, TextOptions const& options = {}) {
  TemporaryFolder const folder;
  Read result;
  Samples const samples = read_samples_text(folder.write("clicks.tsv", text), layout, options, result.notices);
  samples.read(0, samples.size(), result.samples);
  result.digest = samples.digest();
  return result;
}

// Compares samples that were read with the oracle's samples of the same lines.
void expect_as_oracle(Layout const& layout, std::vector<std::string> const& lines, Read const& got) {
  ASSERT_EQ(got.samples.samples, lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) expect_sample(layout, got.samples, i, oracle_sample(layout, lines[i]));
}

// Expects that reading this one line throws an error with these words.
void expect_bad(Layout const& layout, std::string const& line, char const* words) {
  expect_error([&] { read(layout, line + "\n"); }, {"1 bad line of 1", "clicks.tsv:1 ", words});
}

std::string hexadecimal(std::uint32_t number) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", number);
  return text;
}

TEST(ValueId, EightLowerCaseHexDigitsAreTheirNumber) {
  std::mt19937 random(1);
  for (int i = 0; i < 10000; ++i) {
    auto const number = static_cast<std::uint32_t>(random());
    EXPECT_EQ(value_id(hexadecimal(number)), number);
  }
  EXPECT_EQ(value_id("00000000"), 0U);
}

TEST(ValueId, OtherTextHasTopBitSet) {
  for (char const* text :
       {"", "0", "1234567", "123456789", "ABCDEF01", "0123456g", "0123456:", "/1234567", "0123456`", "        ",
        "12345\xB1"
        "67",
        "@bcdef01"}) {
    EXPECT_EQ(value_id(text) >> 63, 1U) << text;
  }
  // Every character at every position.
  for (int place = 0; place < 8; ++place) {
    for (int c = 0; c < 256; ++c) {
      std::string text = "0a1b2c3d";
      text[static_cast<std::size_t>(place)] = static_cast<char>(c);
      bool const digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      EXPECT_EQ(value_id(text) >> 63, digit ? 0U : 1U) << text;
    }
  }
  EXPECT_EQ(value_id(""), kMissingId);
  EXPECT_NE(value_id("a"), value_id("b"));
}

TEST(ClickText, MatchesTheOracle) {
  for (Layout const& layout : {criteo_layout(), small_layout(), make_layout(0, 2), make_layout(2, 0),
                               make_layout(0, 2, {"C1", "C2"}), make_layout(1, 1, {}, {"C1"})}) {
    SCOPED_TRACE(layout_text(layout));
    auto const lines = SyntheticText(layout).lines(2500);
    Read const got = read(layout, joined(lines));
    expect_as_oracle(layout, lines, got);
    EXPECT_EQ(got.samples.offsets.empty(), !BlockShape(layout).lists);
  }
}

TEST(ClickText, IsIndependentOfThreadsAndLineEnds) {
  Layout const layout = small_layout();
  auto const lines = SyntheticText(layout).lines(60000);  // several chunks
  std::string const text = joined(lines);
  ASSERT_GT(text.size(), std::size_t{2} << 20);
  Read const one = read(layout, text, {.threads = 1});
  expect_as_oracle(layout, lines, one);
  EXPECT_EQ(read(layout, text, {.threads = 3}).digest, one.digest);
  EXPECT_EQ(read(layout, joined(lines, "\r\n")).digest, one.digest);
  EXPECT_EQ(read(layout, text.substr(0, text.size() - 1)).digest, one.digest);
  EXPECT_EQ(read(layout, "\xEF\xBB\xBF" + text).digest, one.digest);
  EXPECT_NE(read(layout, text + lines[0] + "\n").digest, one.digest);
}

TEST(ClickText, ReadsUnusualCells) {
  Layout const layout = small_layout();
  SampleBatch const batch = read(layout, "1\t-0\t\t1e-300\ta|b:2\ta||b\t:3|x:y:0.5|z\n").samples;
  EXPECT_EQ(batch.numbers[0], 0);
  EXPECT_TRUE(std::isnan(batch.numbers[1]));
  EXPECT_EQ(batch.numbers[2], 0);
  EXPECT_EQ(batch.offsets, (std::vector<std::uint32_t>{0, 1, 4, 7}));
  EXPECT_EQ(batch.values, (std::vector<std::uint64_t>{value_id("a|b:2"), value_id("a"), kMissingId, value_id("b"),
                                                      kMissingId, value_id("x:y"), value_id("z")}));
  EXPECT_EQ(batch.weights, (std::vector<float>{1, 1, 1, 1, 3, 0.5, 1}));
  EXPECT_EQ(read(layout, "-0\t\t\t\t\t\t\n0.5\t\t\t\t\t\t\n").samples.labels, (std::vector<float>{0, 0.5}));
}

TEST(ClickText, NumbersThatAreTooSmallAreZero) {
  for (char const* tiny : {"1e-400", "-1e-400", "0.1e-99999"}) {
    SampleBatch const batch = read(small_layout(), fmt::format("{0}\t{0}\t\t\ta\ta\tx:{0}\n", tiny)).samples;
    EXPECT_EQ(batch.labels[0], 0) << tiny;
    EXPECT_EQ(batch.numbers[0], 0) << tiny;
    EXPECT_EQ(batch.weights.back(), 0) << tiny;
  }
}

TEST(ClickText, RejectsInvalidLabels) {
  Layout const layout = make_layout(1, 1);
  expect_bad(layout, "\t1\ta", "has no label");
  for (char const* label : {"2", "-1", "nan", "inf", "1e999", "click", "0 ", "1.0001", "01x", "\x01"}) {
    expect_bad(layout, std::string(label) + "\t1\ta", "has the label '");
  }
}

TEST(ClickText, RejectsInvalidNumbers) {
  for (char const* number : {"nan", "inf", "-inf", "-", "--1", "1e999", "-1e999", "1e39", "one", "1 ", " 1", "0x10",
                             "+1", "1,5", "1.5.2", "99999999999999999999999999999999999999999999", "5\r"}) {
    bool const short_one = std::string(number).size() <= 24;
    expect_bad(make_layout(3, 1), std::string("1\t1\t") + number + "\t\ta",
               short_one ? " in I2 (not a finite" : "...' in I2");
    expect_bad(make_layout(2, 0), std::string("1\t1\t") + number + (number[1] == '\r' ? "\r" : ""),
               " in I2 (not a finite");
  }
}

TEST(ClickText, RejectsTooFewOrTooManyFields) {
  Layout const layout = make_layout(2, 2);
  expect_bad(layout, "1", "has 1 field, not 5");
  expect_bad(layout, "1\t", "has 2 fields, not 5");
  expect_bad(layout, "1\t2\t3\ta", "has 4 fields, not 5");
  expect_bad(layout, "1\t2\t3\ta\tb\t", "has 6 fields, not 5");
  expect_bad(layout, "1\t2\t3\t0123abcd\t0123abcd\tc", "has 6 fields, not 5");
  expect_bad(make_layout(2, 0), "1\t2\t3\t4", "has 4 fields, not 3");
  expect_bad(criteo_layout(), "0,1,2,3", "has 1 field, not 40");
}

TEST(ClickText, RejectsBytesThatAreNoText) {
  std::string const lines = "1\ta\tb\n0\tb\t";
  for (auto const& [byte, words] : {std::pair(std::string(1, '\0'), "clicks.tsv:2 has a byte of 0"),
                                    std::pair(std::string("\xE9"), "clicks.tsv:2 has the byte 0xE9")}) {
    test::TemporaryFolder const folder;
    auto const path = folder.write("clicks.tsv", lines + byte + "\n");
    std::vector<std::string> notices;
    test::expect_error([&] { read_samples_text(path, make_layout(0, 2), {.bad_share_max = 1}, notices); }, {words});
  }
}

TEST(ClickText, RejectsInvalidValues) {
  for (char const* value : {"a:", "a:nan", "a:inf", "a:-", "a|b:c", "a:1e999", "x:1|y:2|z:"}) {
    expect_bad(make_layout(0, 1, {}, {"C1"}), std::string("1\t") + value, "after a ':' in C1 (not a finite number)");
  }
}

TEST(ClickText, LimitsTheValuesOfACell) {
  Layout const layout = make_layout(0, 2, {"C2"});
  std::string most = "1\ta\t";
  for (std::size_t i = 1; i < kCellValuesMax; ++i) most += "b|";
  EXPECT_EQ(read(layout, most + "\n").samples.values.size(), 1 + kCellValuesMax);
  expect_bad(layout, most + "|", "has more than 65536 values in C2");
  // Values of bad lines are removed.
  Read const after = read(layout, most + "|\n1\ta\tb\n", {.bad_share_max = 0.5});
  EXPECT_EQ(after.samples.values.size(), 2U);
}

TEST(ClickText, LimitsTheValuesOfABlock) {
  Layout const layout = make_layout(0, 1, {"C1"});
  std::string line = "1\t";
  for (std::size_t i = 1; i < kCellValuesMax; ++i) line += "|";
  std::string text;
  for (int i = 0; i < 65; ++i) text += line + "\n";
  expect_error([&] { read(layout, text); }, {"1024 consecutive samples have more than 4194304 values"});
}

TEST(ClickText, AcceptsLongLinesUpToALimit) {
  Layout const layout = make_layout(1, 2);
  std::string const name(10'000'000, 'x');
  std::vector<std::string> const lines = {"1\t2\ta\tb", "0\t3\t" + name + "\tc", "1\t4\td\te"};
  expect_as_oracle(layout, lines, read(layout, joined(lines)));
  expect_error([&] { read(layout, "1\t2\ta\tb\n" + std::string(20'000'000, 'x')); },
               {"clicks.tsv:2: the line is longer than 16 MiB"});
}

TEST(ClickText, CountsBadLinesAndErrorNamesFirst) {
  Layout const layout = make_layout(1, 1);
  std::string text;
  for (int i = 1; i <= 400000; ++i) text += i == 3 || i > 399996 ? "bad\n" : "1\t5\tabcdef01\n";  // in several chunks
  expect_error([&] { read(layout, text); },
               {"5 bad lines of 400000", "clicks.tsv:3 has 1 field", "clicks.tsv:399997 has",
                "clicks.tsv:399998 has 1 field, not 3, ...",
                "a line is a label, 1 number (data.numeric_columns) and 1 category (", "data.bad_share_max"});
  Read const some = read(layout, text, {.bad_share_max = 0.001});
  EXPECT_EQ(some.samples.samples, 399995U);
  ASSERT_EQ(some.notices.size(), 1U);
  EXPECT_NE(some.notices[0].find("skipped 5 bad lines of 400000"), std::string::npos) << some.notices[0];
  expect_error([&] { read(layout, text, {.bad_share_max = 0.00001, .bad_share_setting = "--share"}); }, {"--share"});
}

TEST(ClickText, RejectsFilesWithoutSamples) {
  expect_error([] { read(criteo_layout(), ""); }, {"clicks.tsv has no samples"});
  expect_error([] { read(criteo_layout(), "x\n", {.bad_share_max = 1}); }, {"clicks.tsv has no samples"});
  TemporaryFolder const folder;
  std::vector<std::string> notices;
  expect_error([&] { read_samples_text(folder.path(), criteo_layout(), {}, notices); }, {"is a folder"});
  expect_error([&] { read_samples_text(folder.path() / "none", criteo_layout(), {}, notices); }, {"cannot be opened"});
}

}  // namespace
}  // namespace gpups::trainer::click_text_test
