// SPDX-License-Identifier: Apache-2.0
// What a run is about, apart from the run itself: a data set, what learns from it, and how well it does.
//
// A kind of task is a Data, which is read once, and a Task, of which each rank has its own. Training knows no more of
// either than what is here.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/batch_sampler.hpp"
#include "trainer/config.hpp"
#include "trainer/dense_layers.hpp"
#include "trainer/memory_plan.hpp"
#include "trainer/model_shape.hpp"

namespace gpups::trainer {

// How well a model does on a split.
struct Metrics {
  nlohmann::json json;
  std::string text;    // for a person
  double quality = 0;  // the larger, the better: what patience watches
};

// A batch on its way through a step: made ahead of it, run in it; with train.reuse_batches again in each later epoch.
class TaskStep {
 public:
  virtual ~TaskStep() = default;

  // The entries of the task's tables; refers to this object.
  virtual std::vector<TableBatch> tables() const = 0;

  // rows[part] is what Store::pull gave. Returns the sum over the samples of their loss, in units of 2^-30: an integer,
  // so that it has no order. Leaves gradients of rows to gradients(), those of dense layers in the task's. Waits for
  // `stream`, for that number.
  virtual std::int64_t forward_backward(Stream& stream, PreparedBatch const& prepared,
                                        std::span<MatrixView<float const> const> rows) = 0;

  // One element for each of tables(). What they refer to stays until the task's next step.
  virtual std::vector<TableGradients> gradients() const = 0;
};

class Task {
 public:
  virtual ~Task() = default;

  // REQUIRES: the store gets these in this order, before anything else.
  virtual std::vector<TableOptions> tables() const = 0;
  // What every rank has a copy of, or null.
  virtual DenseLayers* dense() { return nullptr; }

  // Reads the batch's samples and lists the entries. One thread at a time, any one; a function of configuration, data
  // and batch alone. `this` must stay.
  virtual std::unique_ptr<TaskStep> prepare(Stream& stream, Batch const& batch) = 0;

  // How well the model does on a split that the data has. The same for every number of ranks. Waits. Collective,
  // between steps.
  virtual Metrics wait_evaluate(Stream& stream, Store& store, std::string_view split) = 0;

  // How well it has predicted samples before it learnt from them, since the last call; nothing where this was not
  // asked for, or there were none. Waits. Collective, between steps.
  virtual std::optional<Metrics> wait_progressive(Store&) { return std::nullopt; }

  // What a checkpoint holds of the task beside tables, and takes it from there. wait_restore() throws Error where that
  // is not there, or of another model. Both wait.
  virtual std::vector<Blob> wait_save(Stream&) const { return {}; }
  virtual void wait_restore(Stream&, std::span<Blob const>) {}

  // An error's text, with the names behind the keys in it.
  virtual std::string explain(std::string message) const { return message; }
};

// Where a task is made: what a rank is, and what the run has settled.
struct TaskContext {
  Group group;
  Device device;
  std::uint32_t microbatches;
  std::int64_t schedule_steps;  // where the learning rate's schedule ends, unless the configuration says
};

class Data {
 public:
  virtual ~Data() = default;

  // Samples to learn from; a batch names them by their numbers, from 0.
  virtual std::uint64_t samples() const = 0;
  // Samples that lie beside each other in the data: what is cheap to read together.
  virtual std::uint64_t block() const { return 256; }
  // "triple": what a sample is.
  virtual std::string_view noun() const = 0;
  // REQUIRES: split is "valid" or "test".
  virtual bool has(std::string_view split) const = 0;
  // Equal data has equal ones.
  virtual std::uint64_t digest() const = 0;
  // What a person should know: of the reading, and of what was read.
  virtual std::vector<std::string> notices() const = 0;
  virtual std::string summary() const = 0;
  virtual nlohmann::json counts() const = 0;

  // The memory that a rank's task will take beside its tables' rows, and that the data takes: nothing of the former is
  // there yet.
  virtual MemoryPlan memory_plan(Config const& config, Device device, StepSizes const& step) const = 0;

  // For one rank. `this` must stay. Throws Error for a configuration that does not fit.
  virtual std::unique_ptr<Task> make_task(Config const& config, TaskContext const& context) const = 0;
};

// Reads what config.data names. Throws Error, naming file and line, where there is no data or too much of it is bad.
std::unique_ptr<Data const> read_data(Config const& config);

std::vector<std::string> all_reader_names();
std::vector<std::string> all_model_names();
// Models that learn from what this reader reads.
std::vector<std::string> model_names_for(std::string_view reader);
// Of the model that the configuration describes. Throws Error where there can be none.
ModelShape model_shape(Config const& config);

}  // namespace gpups::trainer
