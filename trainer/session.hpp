// SPDX-License-Identifier: Apache-2.0
// What a configuration asks for, made: a rank's task, and a store with the task's tables.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "gpups/gpups.hpp"
#include "trainer/config.hpp"
#include "trainer/task.hpp"

namespace gpups::trainer {

struct Session {
  std::unique_ptr<Task> task;
  Store store;
  std::string gpu_interconnect;  // by what data go, and why, in words for a log; empty where no rank has a GPU
};

// What a run settles when it begins, and keeps.
struct RunPlan {
  std::uint32_t microbatches;
  std::int64_t schedule_steps;
};

// Throws Error for options that do not fit each other, and for a device that is not there. Allocates no rows. `data`
// must stay. Collective; before_waiting is called when this rank has found no fault, before it waits for the others.
Session open_session(
    Config const& config, Data const& data, Group const& group, RunPlan const& plan,
    std::function<void()> const& before_waiting = [] {});

// Loads the tables and the dense layers of a checkpoint. Collective.
void wait_restore(Session& session, std::filesystem::path const& checkpoint);

// Throws Error where a rank has another configuration, cut or data than rank 0, naming it. Collective.
void wait_check_consistency(Store& store, Config const& config, std::uint64_t data_digest);

}  // namespace gpups::trainer
