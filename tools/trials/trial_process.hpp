// SPDX-License-Identifier: Apache-2.0
// A trial of a search as a process of its own, so that a trial that fails, or needs too much memory, ends alone.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/config.hpp"

namespace gpups::tools {

// How a trial ended.
struct TrialEnd {
  std::string error;            // why it failed, or empty
  bool was_stopped = false;     // by a signal that asks a process to end
  bool of_environment = false;  // the machine killed it, or it lacked memory or disk space: try again
};

// Waits until the process that used a run's folder has released it, for a few seconds, and removes what an interrupted
// first save left there, so that the run can begin again. config_file: the configuration of the run.
void wait_free_folder(std::filesystem::path const& folder, std::filesystem::path const& config_file);

// Returns the overrides of a command line for its trials: without the folder, which is that of the command.
std::vector<std::string> settings_for_trials(std::vector<trainer::SettingOverride> const& overrides);

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

  // Returns how the process ended, or nothing if it has not. Does not block.
  std::optional<TrialEnd> ended();
  // Asks the process to save a checkpoint and end.
  void stop();

 private:
  TrialEnd end_of(int status) const;

  pid_t process_ = -1;
  std::filesystem::path log_;
  std::uintmax_t log_begin_ = 0;  // size of the log before
};

}  // namespace gpups::tools
