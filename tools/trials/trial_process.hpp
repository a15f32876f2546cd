// SPDX-License-Identifier: Apache-2.0
// A trial of a search as a process of its own, so that a trial that fails, or needs too much memory, ends alone.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gpups::tools {

// This program with other arguments. It is killed if this process ends.
class TrialProcess {
 public:
  // arguments: those of gpu_train, without the name of the program. log: a file to which its output is appended. Throws
  // Error if it cannot be started.
  TrialProcess(std::vector<std::string> const& arguments, std::filesystem::path const& log);
  // Kills the process if it has not ended.
  ~TrialProcess();
  TrialProcess(TrialProcess const&) = delete;
  TrialProcess& operator=(TrialProcess const&) = delete;

  // Returns why the process failed, or an empty string if it succeeded; nothing if it has not ended. Does not block.
  std::optional<std::string> ended();
  // Asks the process to save a checkpoint and end.
  void stop();

 private:
  std::string why(int status) const;

  pid_t process_ = -1;
  std::filesystem::path log_;
};

}  // namespace gpups::tools
