// SPDX-License-Identifier: Apache-2.0
// The interface between the training loop and a kind of task: the data, the model and its evaluation.
//
// A kind of task (trainer/config/task_kind.hpp) implements Data, which a process reads once, Task, which each rank
// creates from the Data, and TaskStep, which the Task creates for each batch.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/accounts/memory_plan.hpp"
#include "trainer/config/config.hpp"
#include "trainer/dense/dense_layers.hpp"
#include "trainer/placement/placement.hpp"
#include "trainer/step/batch_sampler.hpp"

namespace gpups::trainer {

// The quality of a model on a split.
struct Metrics {
  nlohmann::json json;
  std::string text;    // for the log
  double quality = 0;  // larger is better; train.patience watches it
};

// One batch of a task. It is created some steps ahead and runs once, or once in each epoch with train.reuse_batches.
class TaskStep {
 public:
  virtual ~TaskStep() = default;

  // Returns the entries of each table. The views refer to this object.
  virtual std::vector<TableBatch> tables() const = 0;

  // Computes the loss and all gradients. rows[part]: the rows from Store::pull. gradients() then returns the gradients
  // of rows; those of dense layers are in Task::dense(). Returns losses, on the device of the stream, whose sum is that
  // of the samples in units of 2^-30: integers, so that sums do not depend on their order. They are valid until the
  // task's next step.
  virtual View<std::int64_t const> forward_backward(Stream& stream, PreparedBatch const& prepared,
                                                    std::span<MatrixView<float const> const> rows) = 0;
  // Gets these losses on the host, before the task's next step.
  virtual void take_losses(Stream&, std::span<std::int64_t const>) {}

  // Returns one element for each of tables(). The views are valid until the task's next step.
  virtual std::vector<TableGradients> gradients() const = 0;
};

// The model of one rank: its tables, dense layers, steps and evaluation.
class Task {
 public:
  virtual ~Task() = default;

  // Returns the tables. REQUIRES: the caller adds them to an empty store, in this order.
  virtual std::vector<TableOptions> tables() const = 0;
  // Returns the dense layers, or null if the model has none.
  virtual DenseLayers* dense() { return nullptr; }

  // Reads the batch's samples and lists their entries. The result depends on configuration, data and batch only. Its
  // arrays may still be copied by work on `stream`. The task must outlive the step. Any thread, one at a time.
  virtual std::unique_ptr<TaskStep> prepare(Stream& stream, Batch const& batch) = 0;

  // Computes what a step needs in addition to its rows. Blocks. Collective, before the step.
  virtual void wait_before_step(Stream&, Store&, Clock) {}

  // Evaluates the model on a split that the data has. The result is the same for every number of ranks. After a signal
  // (StopSignals) it may return at once, with metrics of some of the samples. Blocks. Collective, between steps.
  virtual Metrics wait_evaluate(Stream& stream, Store& store, std::string_view split) = 0;

  // Returns whether the task has progressive validation: metrics of the samples of the first epoch, which were
  // predicted before they were trained on.
  virtual bool is_progressive() const { return false; }
  // Returns the progressive validation since the last call, or nothing if it is off or there were no samples. Blocks.
  // Collective, between steps.
  virtual std::optional<Metrics> wait_progressive(Store&) { return std::nullopt; }

  // Returns the task's state other than tables, for a checkpoint. Blocks.
  virtual std::vector<Blob> wait_save(Stream&) const { return {}; }
  // Restores that state. Throws Error if blobs are missing or belong to another model. Blocks.
  virtual void wait_restore(Stream&, std::span<Blob const>) {}

  // Returns an error message with the names of the keys in it.
  virtual std::string explain(std::string message) const { return message; }
};

// The rank and the run for which a task is created.
struct TaskContext {
  Group group;
  Device device;
  std::uint32_t microbatches;
  std::int64_t schedule_steps;  // end of the learning rate's schedule if the configuration does not set it
  std::shared_ptr<Placement const> placement{};  // of training with placement.initial = "graph", else null
};

// A unit of the training data, in which the speed of a run is reported.
struct SpeedUnit {
  std::string_view name = "samples";  // the plural
  double per_sample = 1;              // how many a sample has, as a mean over the training data
};

class Dictionary;  // trainer/input/dictionary.hpp

// Names whose rows of table 0 users compare: the first `seen` of `names`, which are in the training data. names: null
// if the data has no such names.
struct NamedRows {
  Dictionary const* names = nullptr;
  std::size_t seen = 0;
};

// The data of a run, read once for all ranks of a process. Any thread.
class Data {
 public:
  virtual ~Data() = default;

  // Returns the number of training samples. A batch has their indices, from 0.
  virtual std::uint64_t samples() const = 0;
  // Returns train.batch_size if it is 0: small enough that a row occurs in few samples of a step. REQUIRES: the default
  // of train.batch_size is 0, by which a kind says that it chooses.
  virtual std::uint64_t chosen_batch(Config const&) const { return 0; }
  // Returns the number of consecutive samples that are cheap to read together.
  virtual std::uint64_t block() const { return 256; }
  // Returns whether the order of samples is random, and new in each epoch.
  virtual bool is_shuffled() const { return true; }
  // Returns the word for a sample, such as "triple".
  virtual std::string_view noun() const = 0;
  // Returns the unit in which users measure speed. The log has this speed, and metrics.jsonl and summary.json have it
  // beside that in samples.
  virtual SpeedUnit speed_unit() const { return {}; }
  // Returns whether the data has this split. REQUIRES: split is "valid" or "test".
  virtual bool has(std::string_view split) const = 0;
  // Returns a digest of the data.
  virtual std::uint64_t digest() const = 0;
  // Returns sentences about the reading of the data, for the log.
  virtual std::vector<std::string> notices() const = 0;
  // Returns one line about the sizes of the data, for the log.
  virtual std::string summary() const = 0;
  // Returns the sizes of the data, for summary.json.
  virtual nlohmann::json counts() const = 0;

  // Returns the names of rows, for the search of neighbours.
  virtual NamedRows named_rows() const { return {}; }
  // Returns the rows that each training sample reads. REQUIRES: the kind of task has the key placement.initial.
  virtual SampleRows sample_rows() const { return {}; }
  // Returns the placement of a configuration's training into as many parts as there are microbatches, or null with
  // placement.initial = "hash". All ranks of the process share it: the first call computes it, and others wait for it.
  std::shared_ptr<Placement const> placement(Config const& config, std::uint32_t microbatches) const;

  // Returns the memory of the data, and the memory that a rank's task will allocate in addition to the rows of its
  // tables.
  virtual MemoryPlan memory_plan(Config const& config, Device device, StepSizes const& step) const = 0;

  // Creates the task of one rank. The data must outlive it. Throws Error if the configuration does not fit the data.
  virtual std::unique_ptr<Task> make_task(Config const& config, TaskContext const& context) const = 0;

 private:
  mutable std::mutex placement_mutex_;
  mutable std::optional<PartitionOptions> placement_options_;  // of placement_
  mutable std::shared_ptr<Placement const> placement_;
};

// Reads the data of a configuration; see TaskKind::read().
std::unique_ptr<Data const> read_data(Config const& config);
// Returns the configuration with the batch size that the data chooses, if it is 0.
Config with_batch_size(Config config, Data const& data);

}  // namespace gpups::trainer
