// SPDX-License-Identifier: Apache-2.0
// Requirements on every reader.
#include "trainer/tasks/graph/reader.hpp"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::trainer::readers_test {
namespace {

TEST(Readers, NamesAreUnique) {
  auto const names = reader_names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), readers().size());
}

TEST(Readers, RejectUnknownName) {
  test::expect_error([] { read_dataset({.reader = "parquet"}); }, {"'parquet'", "triples, wordnet"});
}

TEST(Readers, TriplesRejectDevicesAndFolders) {
  auto const read = [](char const* folder, char const* file) {
    return read_dataset({.reader = "triples", .folder = folder, .train = file});
  };
  test::expect_error([&] { read("/dev", "zero"); }, {"/dev/zero:1 has a byte of 0"});
  test::expect_error([&] { read("/dev", "null"); }, {"/dev/null has no triples"});
  test::expect_error([&] { read("/", "tmp"); }, {"/tmp is a folder"});
}

TEST(Readers, ErrorNamesMissingFolder) {
  for (std::string const& name : reader_names()) {
    test::expect_error([&] { read_dataset({.reader = name, .folder = "/no/such/folder"}); },
                       {"/no/such/folder/", "cannot be opened"});
  }
}

TEST(Readers, RejectEmptyFiles) {
  test::TemporaryFolder const folder;
  for (char const* file : {"train.txt", "valid.txt", "test.txt", "data.noun", "data.verb", "data.adj", "data.adv",
                           "index.noun", "index.verb", "index.adj", "index.adv"}) {
    folder.write(file, "");
  }
  for (std::string const& name : reader_names()) {
    test::expect_error([&] { read_dataset({.reader = name, .folder = folder.path().string()}); },
                       {"training needs some"});
  }
}

}  // namespace
}  // namespace gpups::trainer::readers_test
