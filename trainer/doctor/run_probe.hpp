// SPDX-License-Identifier: Apache-2.0
// Tries what a run does before its first step, and leaves nothing behind.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "trainer/config.hpp"
#include "trainer/doctor/facts.hpp"
#include "trainer/run_folder_lock.hpp"

namespace gpups::trainer {

struct RunProbe {
  RunFacts facts{};
  std::unique_ptr<RunFolderLock> folder_lock{};  // of rank 0, where the folder can be used
};

// Reads the configuration and its data, asks for the device, and claims the run's folder, which is rank 0's to do. What
// fails is among the facts.
RunProbe probe_run(std::filesystem::path const& config, std::vector<SettingOverride> const& overrides, int rank,
                   int local_rank);

}  // namespace gpups::trainer
