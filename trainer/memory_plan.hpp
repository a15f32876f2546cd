// SPDX-License-Identifier: Apache-2.0
// How much memory a run will take, before it takes any: what grows with the configuration and with the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/config.hpp"

namespace gpups::trainer {

// One use of memory on one rank, at its largest.
struct PlannedMemory {
  std::string what;
  std::uint64_t bytes;
  std::string settings{};  // what to lower for less; empty: nothing
  bool on_host = false;    // also where the rank computes on a GPU
  bool taken = false;      // already, as the data is; once for all ranks of the process
  bool with_task = false;  // as the task is made; all else as steps are computed
};
using MemoryPlan = std::vector<PlannedMemory>;

// What a rank computes in a step, at most.
struct StepSizes {
  std::size_t samples, microbatches, microbatch_samples;
  std::size_t prepared;  // batches that are prepared at the same time, the current one included
  std::size_t kept;      // batches that are kept from epoch to epoch, with train.reuse_batches
  std::size_t ranks;
  std::size_t threads;  // on the host; 1 on a GPU
};
// data_samples: to learn from. microbatches: of the global batch; 0: as a new run would have.
StepSizes step_sizes(Config const& config, std::uint64_t data_samples, Device device, int ranks,
                     std::uint32_t microbatches);
// Microbatches of a new run.
std::uint32_t new_microbatches(Config const& config, int ranks);

// A part of a rank's batch.
struct BatchPart {
  std::size_t entries, rows;  // rows: distinct ones
  std::size_t dim;
  DataType value_type;
  std::size_t entry_bytes;  // that the task keeps of each entry, beside the store
};
// What the store and the training loop take for batches of these parts. settings: of the task, that make them large.
void add_batches(MemoryPlan& plan, std::span<BatchPart const> parts, StepSizes const& step, Device device,
                 std::string const& settings);

// Rows of a table, where the store is not told how many there will be.
std::uint64_t table_bytes(TableOptions const& options, std::size_t rows);

// What saving a table takes, whose rows go some at a time: first on the device, then on the host.
void add_saving(MemoryPlan& plan, std::span<TableOptions const> tables, std::size_t ranks);

// How many different numbers there are when `draws` are drawn from 0 .. of - 1, on average.
std::size_t distinct_of(std::size_t draws, std::size_t of);

// The plan's lines as a user reads them, the sum last. ranks: of this process.
std::vector<std::string> memory_text(MemoryPlan const& plan, Device device, int ranks);

// The plan's lines that are not taken when the task has been made.
MemoryPlan without_task(MemoryPlan const& plan);

// Throws Error where what the plan has yet to take is more than there is: on the host by what the system and the
// control groups around the process leave, on a GPU by what is free there. ranks: of this process, each with this plan.
void require_memory(MemoryPlan const& plan, Device device, int ranks);
// The same, given what there is.
struct MemoryAvailable {
  std::uint64_t host, device;
};
void require_memory(MemoryPlan const& plan, Device device, int ranks, MemoryAvailable const& available);

}  // namespace gpups::trainer
