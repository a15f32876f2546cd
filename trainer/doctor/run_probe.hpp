// SPDX-License-Identifier: Apache-2.0
// Tries the work of a run before its first step, and leaves no files behind.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "trainer/config/config.hpp"
#include "trainer/doctor/facts.hpp"
#include "trainer/saved/run_folder_lock.hpp"

namespace gpups::trainer {

// The result of a trial.
struct RunProbe {
  RunFacts facts{};
  std::unique_ptr<RunFolderLock> folder_lock{};  // on rank 0, if the folder can be used
};

// Reads the configuration and its data, checks the device, and, on rank 0, locks the run's folder. Errors are in
// RunFacts::errors.
RunProbe probe_run(std::filesystem::path const& config, std::vector<SettingOverride> const& overrides, int rank,
                   int local_rank);

}  // namespace gpups::trainer
