// SPDX-License-Identifier: Apache-2.0
// Files of held-out samples may be left out.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/run/train_fixture.hpp"

namespace gpups::trainer::held_out_files_test {
namespace {

using test::expect_error;

class HeldOutFiles : public TrainTest {};

TEST_F(HeldOutFiles, ErrorSaysHowToTrainWithoutIt) {
  for (std::string const split : {"valid", "test"}) {
    std::filesystem::rename(folder_.path() / (split + ".txt"), folder_.path() / "away");
    std::string const what = split + ".txt does not exist (data." + split, instead = "set data." + split + " = \"\"";
    expect_error([&] { run("run", {"train.steps=2"}); }, {what.c_str(), instead.c_str()});
    EXPECT_EQ(run("without-" + split, {"train.steps=2", "data." + split + "="}).count(split), 0U);
    std::filesystem::rename(folder_.path() / "away", folder_.path() / (split + ".txt"));
  }
}

// The second reader of a pipe would wait forever.
TEST_F(HeldOutFiles, CannotBeThePipeOfAnotherSplit) {
  auto const pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", folder_.path() / "link");
  expect_error(
      [&] {
        run("run", {"data.train=pipe", "data.valid=", "data.test=link"});
      },
      {"data.train and data.test are the same pipe", "can be read once", "to a file"});
}

}  // namespace
}  // namespace gpups::trainer::held_out_files_test
