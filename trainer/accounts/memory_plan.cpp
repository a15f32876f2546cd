// SPDX-License-Identifier: Apache-2.0
#include "trainer/accounts/memory_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/index/key_index.hpp"
#include "kernels/rows/number_type.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/runtime/arena.hpp"
#include "kernels/runtime/cuda_runtime.hpp"
#include "kernels/runtime/host_memory.hpp"
#include "kernels/update/sum_and_update.hpp"
#include "kernels/update/update_rows.hpp"
#include "trainer/base/progress_reporter.hpp"

namespace gpups::trainer {
namespace {

constexpr std::uint32_t kMicrobatches = 8;  // default for up to as many ranks

std::uint64_t share_elsewhere(std::uint64_t rows, std::size_t ranks) { return rows * (ranks - 1) / ranks; }

bool on_host(PlannedMemory const& line, Device device) { return device.is_host() || line.on_host; }

// Returns the bytes of all ranks of the process.
std::uint64_t in_process(PlannedMemory const& line, int ranks) {
  return line.taken ? line.bytes : line.bytes * static_cast<std::uint64_t>(ranks);
}

// Returns the three largest lines as text, for example "1.2 GiB for prepared batches (lower train.batch_size)".
std::string largest_lines(MemoryPlan lines, int ranks) {
  std::sort(lines.begin(), lines.end(), [](auto const& a, auto const& b) { return a.bytes > b.bytes; });
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(lines.size(), 3); ++i) {
    PlannedMemory const& line = lines[i];
    text += fmt::format("{}{} for {}{}", i == 0 ? "" : "; ", short_bytes(in_process(line, ranks)), line.what,
                        line.settings.empty() ? "" : fmt::format(" (lower {})", line.settings));
  }
  return text;
}

void require_room(MemoryPlan const& lines, std::string const& where, int ranks, std::uint64_t available) {
  std::uint64_t needed = 0;
  for (PlannedMemory const& line : lines) needed += in_process(line, ranks);
  if (needed <= available) return;
  throw Error(
      fmt::format("the run needs {} of memory on {}{} and {} is free (it would run out of memory): lower the "
                  "settings of the largest parts, or use more {}: {}",
                  short_bytes(needed), where, ranks > 1 ? fmt::format(", {} ranks together,", ranks) : "",
                  short_bytes(available), where == "the host" ? "machines" : "GPUs", largest_lines(lines, ranks)));
}

}  // namespace

std::uint32_t new_microbatches(Config const& config, int ranks) {
  if (config.train.microbatches > 0) return static_cast<std::uint32_t>(config.train.microbatches);
  return std::max(kMicrobatches, static_cast<std::uint32_t>(ranks));
}

// At the peak, an entry has two edges of 8 bytes for each other entry of its sample, of which most samples have two,
// and the graph of a bisection has a copy of them.
void add_placement(MemoryPlan& plan, Config const& config, std::uint64_t samples, std::uint64_t entries,
                   std::uint64_t rows) {
  if (config.placement.initial != "graph") return;
  plan.push_back({.what = "placement: partition of samples and rows",
                  .bytes = 64 * entries + 16 * samples + 64 * rows,
                  .settings = "placement.initial",
                  .on_host = true,
                  .with_task = true});
}

StepSizes step_sizes(Config const& config, std::uint64_t data_samples, Device device, int ranks,
                     std::uint32_t microbatches, bool shuffled) {
  std::size_t const all = microbatches > 0 ? microbatches : new_microbatches(config, ranks);
  auto const size = static_cast<std::size_t>(ranks), batch = static_cast<std::size_t>(config.train.batch_size);
  std::size_t const per_epoch = (data_samples + batch - 1) / batch;
  std::size_t const samples = shuffled ? (data_samples + per_epoch - 1) / per_epoch  // of all ranks, see BatchSampler
                                       : std::min<std::uint64_t>(batch, data_samples);
  std::size_t const steps = config.train.steps > 0 ? static_cast<std::size_t>(config.train.steps)
                                                   : static_cast<std::size_t>(config.train.epochs) * per_epoch;
  StepSizes step{};
  step.microbatches = (all + size - 1) / size;
  step.microbatch_samples = (samples + all - 1) / all;
  step.samples = std::min(samples, step.microbatches * step.microbatch_samples);
  step.prepared = std::min(static_cast<std::size_t>(lookahead_steps(config, ranks)) + 1, steps);
  step.kept = config.train.reuse_batches ? std::min(per_epoch, steps) : 0;
  step.ranks = size;
  std::size_t const threads =
      config.run.threads > 0 ? static_cast<std::size_t>(config.run.threads)
                             : std::max<std::size_t>(1, static_cast<std::size_t>(kernels::Arena(0).threads()) / size);
  step.threads = device.is_host() ? threads : 1;
  step.replica_fraction = config.placement.replica_fraction;
  step.rows_move = ranks > 1 && rows_move(config);
  return step;
}

// Returns the bytes of replicas beyond the budget. Those of four steps are kept, or none (see
// StoreOptions::replica_fraction); a step and the next one have theirs at the same time.
std::uint64_t replica_bytes(BatchPart const& part, StepSizes const& step) {
  std::uint64_t const rows = part.table.expected_rows;
  std::uint64_t const of_step = share_elsewhere(part.rows, step.ranks);
  std::uint64_t const of_steps = of_step * (step.replica_fraction > 0 ? 4 + 1 : 1 + 1);
  std::uint64_t const needed = rows == 0 ? of_steps : std::min(of_steps, share_elsewhere(rows, step.ranks));
  double const own = static_cast<double>(rows) / static_cast<double>(step.ranks);
  auto const kept = static_cast<std::uint64_t>(step.replica_fraction * own);
  auto const rows_with = [own](std::uint64_t replicas) { return static_cast<std::size_t>(own) + replicas; };
  if (needed <= kept) return 0;
  return table_bytes(part.table, rows_with(needed)) - table_bytes(part.table, rows_with(kept));
}

// Returns the bytes that a home takes for the keys of batches that ranks have announced to it: the keys of each batch
// as they were received and, for the steps that the policy sees, sorted uses, and at most as many users of rows. A user
// takes 16 bytes in the column, and 8 among the most used rows; then 16 while a column is merged into another one, or
// while a step is planned.
std::uint64_t announced_bytes(std::span<BatchPart const> parts, StepSizes const& step) {
  constexpr std::uint64_t kStepsSeen = 16, kSorted = 22, kUsers = 40;  // see cache/placement/announced_uses.hpp
  std::uint64_t bytes = 0;
  for (BatchPart const& part : parts) {
    std::uint64_t const uses = part.rows * std::min<std::uint64_t>(step.prepared, kStepsSeen);
    bytes += part.rows * step.prepared * sizeof(Key) + uses * (kSorted + kUsers);
  }
  return bytes;
}

// A prepared batch has the keys, positions, order and offsets of entries, and the numbers of its rows. The array of
// keys has capacity for one row per entry. On the host only pages that are used take memory; blocks that were used
// before already have such pages, so the plan counts half of the unused capacity.
void add_batches(MemoryPlan& plan, std::span<BatchPart const> parts, StepSizes const& step, Device device,
                 std::string const& settings) {
  constexpr std::uint64_t kPatternEntry = 3 * sizeof(std::uint32_t), kFinding = 16;
  std::uint64_t pattern = 0, announced = 0, replicas = 0, pulled = 0, sums = 0, sent = 0, finding = 0;
  for (BatchPart const& part : parts) {
    std::uint64_t const elsewhere = share_elsewhere(part.rows, step.ranks), stride = row_stride(part.table.dim);
    std::uint64_t const value = part.table.value_type == DataType::kFloat ? sizeof(float) : 2;
    pattern += part.entries * (kPatternEntry + part.entry_bytes);
    pattern += (device.is_host() ? (part.rows + part.entries) / 2 : part.entries) * sizeof(Key);
    announced += (part.rows + elsewhere) * sizeof(std::uint32_t);
    replicas += replica_bytes(part, step);
    pulled += (part.rows + part.rows / 4) * stride * sizeof(float);
    finding += part.entries * kFinding;
    if (step.ranks == 1 && kernels::can_sum_and_update(device, part.table.dim)) continue;
    sums += part.rows * stride * sizeof(std::int64_t);
    // Gradients, usually in 4 bytes or less, and values, each in a send and a receive buffer.
    sent += elsewhere * stride * (2 * sizeof(float) + 2 * value);
  }
  std::string const by_batch = settings.empty() ? "train.batch_size" : "train.batch_size or " + settings;
  if (step.kept > 0) {
    plan.push_back({fmt::format("{} reused batches", step.kept), pattern * step.kept, "train.reuse_batches"});
  }
  std::uint64_t const of_batch = announced + (step.kept > 0 ? 0 : pattern);
  plan.push_back({fmt::format("{} prepared batches", step.prepared), of_batch * step.prepared,
                  by_batch + (settings.empty() ? " or train.lookahead" : ", or train.lookahead")});
  plan.push_back({"search for a batch's distinct keys", finding, by_batch});
  plan.push_back({"rows of a step", pulled, by_batch});
  if (step.rows_move) {
    plan.push_back({"announced uses of rows that may move", announced_bytes(parts, step), "train.lookahead"});
  }
  if (replicas > 0) plan.push_back({"replicas of other ranks' rows, for a few steps", replicas, by_batch});
  if (sums > 0) plan.push_back({"sums of a step's gradients", sums, by_batch});
  if (sent > 0) plan.push_back({"send and receive buffers of gradients and values", sent, by_batch});
}

std::uint64_t table_bytes(TableOptions const& options, std::size_t rows) {
  using kernels::RowStorage;
  return kernels::ValueStorage::bytes_for(rows, options.dim, options.value_type) +
         RowStorage<float>::bytes_for(rows, kernels::state_columns(options.optimizer, options.dim)) +
         kernels::KeyIndex::bytes_for(rows) + RowStorage<std::uint32_t>::bytes_for(rows, kernels::kLifecycleWords);
}

void add_saving(MemoryPlan& plan, std::span<TableOptions const> tables, std::size_t ranks) {
  constexpr std::size_t kRowsAtOnce = 16384;
  std::uint64_t device = 0, host = 0;
  for (TableOptions const& table : tables) {
    std::size_t const rows =
        table.expected_rows == 0 ? kRowsAtOnce : std::min(kRowsAtOnce, table.expected_rows / ranks + 1);
    std::uint64_t const state = kernels::state_columns(table.optimizer, table.dim);
    device = std::max(device, rows * (row_stride(table.dim) + state) * sizeof(float));
    host = std::max(host, rows * (row_stride(table.dim) + 2 * table.dim + state) * sizeof(float));
  }
  plan.push_back({.what = "checkpoints: buffers of rows", .bytes = device});
  plan.push_back({.what = "checkpoints: buffers of rows on the host", .bytes = host, .on_host = true});
}

std::size_t distinct_of(std::size_t draws, std::size_t of) {
  if (of == 0) return 0;
  auto const n = static_cast<double>(of);
  return static_cast<std::size_t>(std::ceil(n * -std::expm1(-static_cast<double>(draws) / n)));
}

std::vector<std::string> memory_text(MemoryPlan const& plan, Device device, int ranks) {
  std::vector<std::string> lines;
  std::uint64_t host = 0, there = 0;
  for (PlannedMemory const& line : plan) {
    if (line.bytes == 0) continue;
    bool const names_host = line.what.ends_with("on the host");
    lines.push_back(fmt::format("{:>10}  {}{}", short_bytes(line.bytes), line.what,
                                line.on_host && !device.is_host() && !names_host ? ", on the host" : ""));
    (on_host(line, device) ? host : there) += in_process(line, ranks);
  }
  std::string const of_ranks = ranks > 1 ? fmt::format(" by the {} ranks of this process", ranks) : "";
  if (!device.is_host())
    lines.push_back(fmt::format("{:>10}  total on {}{}", short_bytes(there), to_string(device), of_ranks));
  lines.push_back(fmt::format("{:>10}  total on the host{}", short_bytes(host), of_ranks));
  return lines;
}

MemoryPlan without_task(MemoryPlan const& plan) {
  MemoryPlan rest;
  for (PlannedMemory const& line : plan) {
    if (!line.with_task) rest.push_back(line);
  }
  return rest;
}

void require_memory(MemoryPlan const& plan, Device device, int ranks, MemoryAvailable const& available) {
  MemoryPlan host, there;
  for (PlannedMemory const& line : plan) {
    if (!line.taken) (on_host(line, device) ? host : there).push_back(line);
  }
  require_room(there, to_string(device), ranks, available.device);
  require_room(host, "the host", ranks, available.host);
}

void require_memory(MemoryPlan const& plan, Device device, int ranks) {
  require_memory(plan, device, ranks,
                 {.host = kernels::host_memory().available,
                  .device = device.is_host() ? UINT64_MAX : cuda::memory_info(device.index).free});
}

}  // namespace gpups::trainer
