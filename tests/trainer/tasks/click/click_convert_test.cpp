// SPDX-License-Identifier: Apache-2.0
// Conversion gives the same file from plain and compressed text, leaves no files if it fails, and does not overwrite
// other files.
#include <gmock/gmock.h>
#include <zstd.h>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/trainer/tasks/click/click_fixture.hpp"
#include "trainer/tasks/click/text/convert.hpp"

namespace gpups::trainer::click_convert_test {
namespace {

using test::expect_error;
using test::joined;
using test::small_layout;
using test::SyntheticText;
using test::TemporaryFolder;

std::string compressed(std::string const& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1));
  return packed;
}

struct Conversion {
  // Converts `contents` and returns the digest of the samples.
  std::uint64_t convert(std::string const& contents) {
    done = convert_samples(folder.write("text", contents), binary, small_layout(), options);
    return open_samples(binary).digest();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (auto const& entry : std::filesystem::directory_iterator(folder.path())) all.push_back(entry.path().filename());
    return all;
  }

  TemporaryFolder folder;
  std::filesystem::path binary = folder.path() / "binary";
  TextOptions options;
  Converted done;
};

TEST(ClickConvert, CompressedTextGivesTheSameSamples) {
  Conversion c;
  auto const lines = SyntheticText(small_layout()).lines(50000);
  std::string const text = joined(lines);
  std::uint64_t const digest = c.convert(text);
  EXPECT_EQ(c.convert(compressed(text)), digest);
  std::size_t const half = text.size() / 2;
  std::string const two = compressed(text.substr(0, half)) + compressed(text.substr(half));  // frames end within lines
  EXPECT_EQ(c.convert(two), digest);
  std::string const skipped("\x50\x2A\x4D\x18\x03\0\0\0abc", 11);
  EXPECT_EQ(c.convert(skipped + two + compressed("") + skipped), digest);
  EXPECT_EQ(c.done.samples, lines.size());
  EXPECT_EQ(c.done.bad, 0U);
}

TEST(ClickConvert, RejectsDamagedCompression) {
  Conversion c;
  std::string const packed = compressed(joined(SyntheticText(small_layout()).lines(20000)));
  for (std::size_t size : {std::size_t{4}, std::size_t{5}, packed.size() / 2, packed.size() - 1}) {
    expect_error([&] { c.convert(packed.substr(0, size)); }, {"text ends in the middle of a zstd frame"});
  }
  expect_error([&] { c.convert(packed + packed.substr(0, packed.size() / 3)); }, {"ends in the middle"});
  expect_error([&] { c.convert(packed + "more text\n"); }, {"text cannot be decompressed ("});
  std::string changed = packed;
  changed[4] = '\xFF';
  expect_error([&] { c.convert(changed); }, {"text cannot be decompressed ("});
  expect_error([&] { c.convert("BZh another compression"); }, {"is compressed with bzip2"});
  EXPECT_THAT(c.names(), testing::UnorderedElementsAre("text"));
}

// The inputs are a frame with a window of 2 GiB, and much text in few bytes.
TEST(ClickConvert, DecompressionUsesBoundedMemory) {
  Conversion c;
  std::string const window("\x28\xB5\x2F\xFD\x00\xA8\x01\x00\x00", 9);
  expect_error([&] { c.convert(window); }, {"text cannot be decompressed (", "memory"});
  expect_error([&] { c.convert(compressed(std::string(300'000'000, 'x'))); },
               {"text:1: the line is longer than 16 MiB"});
}

TEST(ClickConvert, ReportsSkippedLines) {
  Conversion c;
  c.options.bad_share_max = 0.5;
  c.convert("1\t\t\t\ta\tb\tc\nbad\n");
  EXPECT_EQ(c.done.samples, 1U);
  EXPECT_EQ(c.done.bad, 1U);
  EXPECT_THAT(c.done.notices, testing::ElementsAre(testing::HasSubstr("1 bad line of 2")));
}

TEST(ClickConvert, FailureKeepsTheOldFile) {
  Conversion c;
  std::uint64_t const digest = c.convert("1\t\t\t\ta\tb\tc\n");
  expect_error([&] { c.convert("bad\n"); }, {"1 bad line of 1"});
  EXPECT_EQ(open_samples(c.binary).digest(), digest);
  EXPECT_THAT(c.names(), testing::UnorderedElementsAre("text", "binary"));
  EXPECT_NE(c.convert("0\t\t\t\ta\tb\tc\n"), digest);  // replaces a file of its kind
}

TEST(ClickConvert, OverwritesNoOtherFile) {
  Conversion c;
  auto const text = c.folder.write("text", "1\t\t\t\ta\tb\tc\n");
  auto const notes = c.folder.write("notes", "of the user\n");
  expect_error([&] { convert_samples(text, text, small_layout(), {}); }, {"is both the text and the binary file"});
  expect_error([&] { convert_samples(text, notes, small_layout(), {}); }, {"notes exists and is not a binary file"});
  expect_error([&] { convert_samples(text, c.folder.path(), small_layout(), {}); }, {"is a folder"});
  expect_error([&] { convert_samples(text, c.folder.path() / "no/where", small_layout(), {}); },
               {"cannot be created (No such file"});
  c.convert("1\t\t\t\ta\tb\tc\n");
  expect_error([&] { convert_samples(c.binary, c.folder.path() / "new", small_layout(), {}); },
               {"is click data that was converted already"});
  EXPECT_THAT(c.names(), testing::UnorderedElementsAre("text", "notes", "binary"));
}

}  // namespace
}  // namespace gpups::trainer::click_convert_test
