// SPDX-License-Identifier: Apache-2.0
// Locks the folder of a run, so that two runs do not use one folder, and checks that the run overwrites no files that
// gpu_train did not write.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace gpups::trainer {

// The first line of a config.toml that gpu_train has written.
inline constexpr char kConfigMark[] = "# Written by gpu_train: the whole configuration of this run.\n";

// Returns whether gpu_train has written a configuration.
bool has_config_mark(std::filesystem::path const& file);

// Holds the lock of a run's folder while it exists.
class RunFolderLock {
 public:
  // Creates the folder if it does not exist, and locks it. If `folder` is empty, creates a folder below runs/ in the
  // working directory: NAME-YYYYmmdd-HHMMSS in local time, with -2, -3, ... appended if that exists. Throws Error if
  // the folder cannot be created or written to, if another process has locked it, or if the run would replace a file
  // that gpu_train did not write, or `config_file`, the configuration of the run.
  RunFolderLock(std::filesystem::path const& folder, std::string const& name, std::filesystem::path const& config_file);
  // Releases the lock, and removes the folders that the constructor created if they are empty.
  ~RunFolderLock();
  RunFolderLock(RunFolderLock const&) = delete;
  RunFolderLock& operator=(RunFolderLock const&) = delete;

  std::filesystem::path const& path() const { return path_; }
  // Returns whether the folder has a lock file: a process, perhaps on another machine, may have locked it.
  static bool is_locked(std::filesystem::path const& folder);

 private:
  void make(std::filesystem::path const& folder);
  void make_new(std::string const& name);
  void lock();
  void release();

  std::filesystem::path path_;
  std::vector<std::filesystem::path> made_;  // created folders, outermost first
  int lock_ = -1;                            // descriptor of the file `lock`
  bool ours_ = false;                        // this object holds the lock, and the file is empty
};

}  // namespace gpups::trainer
