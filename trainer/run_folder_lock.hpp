// SPDX-License-Identifier: Apache-2.0
// A run's hold on its folder: nothing of somebody else's is overwritten, and no two runs write into one folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace gpups::trainer {

// The first line of a config.toml that gpu_train has written.
inline constexpr char kConfigMark[] = "# Written by gpu_train: the whole configuration of this run.\n";

class RunFolderLock {
 public:
  // Makes the folder if need be, and locks it while the object lives. An empty `folder` is a new one below runs/ in
  // the working directory, NAME-YYYYmmdd-HHMMSS by the local time, with -2, -3, ... behind it where that is taken.
  // Throws Error where the folder cannot be made or written to, where another process has claimed it, where it has
  // files that gpu_train would replace but did not write, and where `config_file`, which the run is made from, is one.
  RunFolderLock(std::filesystem::path const& folder, std::string const& name, std::filesystem::path const& config_file);
  // What was made is removed again where nothing was put into it.
  ~RunFolderLock();
  RunFolderLock(RunFolderLock const&) = delete;
  RunFolderLock& operator=(RunFolderLock const&) = delete;

  std::filesystem::path const& path() const { return path_; }
  // Whether a process, perhaps on another machine, has claimed the folder, as far as can be seen from here.
  static bool is_locked(std::filesystem::path const& folder);

 private:
  void make(std::filesystem::path const& folder);
  void make_new(std::string const& name);
  void lock();
  void release();

  std::filesystem::path path_;
  std::vector<std::filesystem::path> made_;  // outermost first
  int lock_ = -1;                            // descriptor of the file `lock`
  bool ours_ = false;                        // that file is nothing but our lock
};

}  // namespace gpups::trainer
