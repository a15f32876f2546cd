// SPDX-License-Identifier: Apache-2.0
// Patterns name files in the order of the numbers in their names, and copies among them are said.
#include "trainer/input/named_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::trainer::named_files_test {
namespace {

using test::expect_error;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(FilesNamed, MatchPatterns) {
  test::TemporaryFolder const folder;
  for (char const* name : {"part-1.tsv", "part-0.tsv", "part-10.tsv", "part-2.tsv", "other.tsv", "[x].tsv"})
    folder.write(name, "");
  std::vector<std::string> notices;
  auto const names = [&](std::string const& file) {
    std::vector<std::string> found;
    notices.clear();
    for (auto const& path : files_named(folder.path(), file, notices)) found.push_back(path.filename().string());
    return found;
  };
  EXPECT_THAT(names("part-*.tsv"), ElementsAre("part-0.tsv", "part-1.tsv", "part-2.tsv", "part-10.tsv"));
  EXPECT_THAT(names("part-?.tsv"), ElementsAre("part-0.tsv", "part-1.tsv", "part-2.tsv"));
  EXPECT_THAT(notices, ElementsAre("part-?.tsv matches 3 files: part-0.tsv, part-1.tsv, part-2.tsv"));
  EXPECT_THAT(names("o*"), ElementsAre("other.tsv"));
  EXPECT_THAT(names("[x].tsv"), ElementsAre("[x].tsv"));
  EXPECT_THAT(notices, ElementsAre());
  EXPECT_EQ(names("*").size(), 6U);
  EXPECT_THAT(notices, ElementsAre(HasSubstr("part-2.tsv and 1 more")));
  EXPECT_THAT(names("none.tsv"), ElementsAre("none.tsv"));  // the error follows when it is opened
  expect_error([&] { names("none-*.tsv"); }, {"no file matches", "none-*.tsv"});
}

TEST(FilesNamed, ThatAreCopiesAreSaid) {
  test::TemporaryFolder const folder;
  std::vector<std::string> notices;
  for (char const* name : {"d-0.tsv", "d-0.tsv.gz", "d-1.tsv", "e-0.tsv", "e-0.tsv.bak", "e-0.tsv~", "f.gz", "f-0.zst"})
    folder.write(name, "");
  (void)files_named(folder.path(), "d-*", notices);
  EXPECT_THAT(notices, ElementsAre(HasSubstr("d-* matches 3 files"),
                                   HasSubstr("d-0.tsv and d-0.tsv.gz have the names of one file and its copy: if")));
  notices.clear();
  (void)files_named(folder.path(), "e-*", notices);
  EXPECT_THAT(notices, ElementsAre(HasSubstr("e-* matches 3 files"), HasSubstr(", and 1 other pair")));
  notices.clear();
  (void)files_named(folder.path(), "f*", notices);
  EXPECT_THAT(notices, ElementsAre("f* matches 2 files: f-0.zst, f.gz"));
}

TEST(FilesNamed, ThatAreInTwoSplitsAreSaid) {
  test::TemporaryFolder const folder;
  std::vector<std::string> notices, none;
  for (char const* name : {"d-0.tsv", "d-1.tsv", "e.tsv"}) folder.write(name, "");
  auto const say = [&](std::string const& train, std::string const& test) {
    notices.clear();
    say_same_files(files_named(folder.path(), train, none), files_named(folder.path(), test, none), "test", notices);
    return notices;
  };
  EXPECT_THAT(say("d-0.tsv", "./d-0.tsv"), ElementsAre(HasSubstr("data.test and data.train both name d-0.tsv: the")));
  EXPECT_THAT(say("d-*", "*"), ElementsAre(HasSubstr("both name d-0.tsv, d-1.tsv:")));
  EXPECT_THAT(say("d-*", "e.tsv"), ElementsAre());
  EXPECT_THAT(say("none.tsv", "none.tsv"), ElementsAre());  // the error follows
}

}  // namespace
}  // namespace gpups::trainer::named_files_test
