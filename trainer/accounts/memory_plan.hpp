// SPDX-License-Identifier: Apache-2.0
// Estimates the memory of a run before it allocates any: all parts that grow with the configuration or the data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/config/config.hpp"

namespace gpups::trainer {

// One use of memory on one rank, at its peak.
struct PlannedMemory {
  std::string what;
  std::uint64_t bytes;
  std::string settings{};  // the settings to lower for less memory; may be empty
  bool on_host = false;    // host memory, even if the rank computes on a GPU
  bool taken = false;      // already allocated, like the data; shared by all ranks of the process
  bool with_task = false;  // allocated when the task is created, not during steps
};
using MemoryPlan = std::vector<PlannedMemory>;

// The largest sizes of one rank's step.
struct StepSizes {
  std::size_t samples, microbatches, microbatch_samples;
  std::size_t prepared;  // batches that are prepared at the same time, the current one included
  std::size_t kept;      // batches that are reused in each epoch, with train.reuse_batches
  std::size_t ranks;
  std::size_t threads;      // host threads that compute; 1 on a GPU
  double replica_fraction;  // placement.replica_fraction
  bool rows_move;           // the policy may move rows, and there are other ranks
};
// data_samples: number of training samples. microbatches: of the global batch; 0: those of a new run. shuffled: see
// BatchOptions.
StepSizes step_sizes(Config const& config, std::uint64_t data_samples, Device device, int ranks,
                     std::uint32_t microbatches, bool shuffled = true);
// Returns the number of microbatches of a new run.
std::uint32_t new_microbatches(Config const& config, int ranks);

// Sizes of one part of a rank's batch.
struct BatchPart {
  std::size_t entries, rows;  // rows: number of distinct keys
  TableOptions table;
  std::size_t entry_bytes;  // bytes per entry that the task keeps, without those of the store
};
// Adds the memory of the store and the training loop for batches of these parts. settings: the task's settings that
// determine the sizes, for messages.
void add_batches(MemoryPlan& plan, std::span<BatchPart const> parts, StepSizes const& step, Device device,
                 std::string const& settings);

// Adds the placement of training samples, with placement.initial = "graph". entries: rows that all samples read.
void add_placement(MemoryPlan& plan, Config const& config, std::uint64_t samples, std::uint64_t entries,
                   std::uint64_t rows);

// Returns the bytes of a table with this many rows.
std::uint64_t table_bytes(TableOptions const& options, std::size_t rows);

// Adds the buffers in which a checkpoint collects some rows at a time, on the device and on the host.
void add_saving(MemoryPlan& plan, std::span<TableOptions const> tables, std::size_t ranks);

// Returns the expected number of distinct values among `draws` uniform draws from 0 .. of - 1.
std::size_t distinct_of(std::size_t draws, std::size_t of);

// Returns the plan as text lines with the totals at the end. ranks: number of ranks of this process.
std::vector<std::string> memory_text(MemoryPlan const& plan, Device device, int ranks);

// Returns the lines that are still to be allocated after the task was created.
MemoryPlan without_task(MemoryPlan const& plan);

// Throws Error if the plan has to allocate more memory than is free. On the host, the memory limits of control groups
// count too. ranks: number of ranks of this process, each of which has this plan.
void require_memory(MemoryPlan const& plan, Device device, int ranks);
// The same, for a given amount of free memory.
struct MemoryAvailable {
  std::uint64_t host, device;
};
void require_memory(MemoryPlan const& plan, Device device, int ranks, MemoryAvailable const& available);

}  // namespace gpups::trainer
