// SPDX-License-Identifier: Apache-2.0
// Folders that a run may use, and files that remain if a run did not start.
#include "trainer/saved/run_folder_lock.hpp"

#include <gtest/gtest.h>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::trainer::run_folder_lock_test {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::TemporaryFolder;

class RunFolderLockTest : public testing::Test {
 protected:
  void expect_rejected(fs::path const& folder, std::initializer_list<char const*> words) {
    expect_error([&] { RunFolderLock(folder, "x", config_); }, words);
    EXPECT_FALSE(fs::exists(folder / "lock")) << folder;
  }

  TemporaryFolder outer_;
  fs::path config_ = outer_.write("mine.toml", "[run]\n");
};

TEST_F(RunFolderLockTest, RejectsFilesOfOtherPrograms) {
  outer_.write("a/config.toml", "[model]\n");
  expect_rejected(outer_.path() / "a", {"a/config.toml was not written by gpu_train", "move it away"});
  outer_.write("b/metrics.jsonl", "{}\n");
  expect_rejected(outer_.path() / "b", {"b/metrics.jsonl does not belong to a run"});
  outer_.write("c/summary.json", "{}\n");
  expect_rejected(outer_.path() / "c", {"c/summary.json does not belong to a run"});
  config_ = outer_.write("d/config.toml", std::string(kConfigMark) + "[model]\n");
  expect_rejected(outer_.path() / "d",
                  {"the run would write its configuration to", "d/config.toml", "replace your file"});
}

TEST_F(RunFolderLockTest, AcceptsRunFoldersAndUnrelatedFiles) {
  outer_.write("a/config.toml", std::string(kConfigMark) + "[model]\n");
  outer_.write("a/metrics.jsonl", "{}\n");
  EXPECT_NO_THROW(RunFolderLock(outer_.path() / "a", "x", config_));
  EXPECT_NO_THROW(RunFolderLock(outer_.path(), "x", config_));  // mine.toml is not in the way
  config_ = outer_.path() / "a" / "config.toml";                // resumes with the configuration of the run
  fs::create_directory(outer_.path() / "a" / "checkpoint");
  EXPECT_NO_THROW(RunFolderLock(outer_.path() / "a", "x", config_));
}

TEST_F(RunFolderLockTest, LocksFolderDuringObjectLifetime) {
  fs::path const folder = outer_.path() / "run";
  {
    RunFolderLock const folder_lock(folder, "x", config_);
    expect_error([&] { RunFolderLock(folder, "x", config_); }, {"run is in use by another gpu_train", "rank 0"});
    outer_.write("run/summary.json", "{}");
    outer_.write("run/config.toml", kConfigMark);
  }
  EXPECT_FALSE(fs::exists(folder / "lock"));
  EXPECT_NO_THROW(RunFolderLock(folder, "x", config_));
}

TEST_F(RunFolderLockTest, RemovesEmptyFolderItCreated) {
  fs::create_directories(outer_.path() / "kept");
  { RunFolderLock const folder_lock(outer_.path() / "new" / "newer", "x", config_); }
  { RunFolderLock const folder_lock(outer_.path() / "kept", "x", config_); }
  EXPECT_FALSE(fs::exists(outer_.path() / "new"));
  EXPECT_TRUE(fs::is_empty(outer_.path() / "kept"));
  outer_.write("kept/lock", "not ours");
  { RunFolderLock const folder_lock(outer_.path() / "kept", "x", config_); }
  EXPECT_TRUE(fs::exists(outer_.path() / "kept" / "lock"));
}

TEST_F(RunFolderLockTest, RejectsPathThatCannotBeAFolder) {
  expect_error([&] { RunFolderLock(config_, "x", config_); }, {"mine.toml cannot be"});
  expect_error([&] { RunFolderLock(config_ / "below", "x", config_); }, {"mine.toml/below cannot be created"});
  expect_error([&] { RunFolderLock(outer_.path() / std::string(300, 'x'), "x", config_); }, {"File name too long"});
}

TEST_F(RunFolderLockTest, NewFolderNamesHaveTimeAndAreUnique) {
  fs::path const before = fs::current_path();
  fs::current_path(outer_.path());
  {
    RunFolderLock const a({}, "x", config_), b({}, "x", config_), c({}, "x", config_);
    EXPECT_NE(a.path(), b.path());
    EXPECT_NE(b.path(), c.path());
    std::string name = a.path().string();
    for (char& digit : name) digit = digit >= '0' && digit <= '9' ? '#' : digit;
    EXPECT_EQ(name, "runs/x-########-######");
  }
  EXPECT_FALSE(fs::exists("runs"));
  fs::current_path(before);
}

}  // namespace
}  // namespace gpups::trainer::run_folder_lock_test
