// SPDX-License-Identifier: Apache-2.0
// Creates the objects of a configuration: a rank's task, and a store with the task's tables.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "gpups/gpups.hpp"
#include "trainer/config/config.hpp"
#include "trainer/step/task.hpp"

namespace gpups::trainer {

// The objects of one rank.
struct Session {
  std::unique_ptr<Task> task;
  Store store;
  std::string gpu_interconnect;  // how GPUs exchange data, and why, for a log; empty if no rank has a GPU
};

// Values that a run chooses when it begins, and that do not change when it resumes.
struct RunPlan {
  std::uint32_t microbatches;
  std::int64_t schedule_steps;
  std::shared_ptr<Placement const> placement{};  // see TaskContext
};

// Returns the configuration with the policy that "auto" stands for, which depends on whether all ranks share a host.
Config with_policy(Config config, Group const& group);

// Creates the task and the store. Allocates no rows. `data` must outlive the session. before_waiting: called when this
// rank's options are valid, before it waits for other ranks. Throws Error for options that do not fit together, and for
// a device that does not exist. Collective.
Session open_session(
    Config const& config, Data const& data, Group const& group, RunPlan const& plan,
    std::function<void()> const& before_waiting = [] {});

// Loads the tables and the dense layers of a checkpoint. Blocks. Collective.
void wait_restore(Session& session, std::filesystem::path const& checkpoint);

// Throws Error on all ranks if a rank has another configuration or other data than rank 0. Blocks. Collective.
void wait_check_consistency(Store& store, Config const& config, std::uint64_t data_digest);

// Moves the rows of this rank's parts to it. Call it before batches are prepared. Blocks. Collective.
void wait_place_rows(Store& store, Placement const& placement);

}  // namespace gpups::trainer
