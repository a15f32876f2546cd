// SPDX-License-Identifier: Apache-2.0
// The configuration of a run: a TOML file of sections and keys, with overrides from the command line. data.reader
// selects the kind of task, which describes the keys that it has. The settings that only this kind has are in
// Config::task.
#pragma once

#include <any>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpups/device.hpp"
#include "kernels/base/assert.hpp"
#include "trainer/input/table_layout.hpp"

namespace gpups::trainer {

// Files of the data ([data]).
struct DataConfig {
  std::string reader = "triples";
  std::string folder{};  // of the files below, or of the WordNet database
  std::string train = "train.txt";
  std::string valid = "valid.txt";  // empty: none, or a share of the samples in `train`
  std::string test = "test.txt";    // empty: the same
  double valid_share = 0.02;
  double test_share = 0.02;
  std::int64_t split_seed = 1;
  double bad_share_max = 0;
  TableSettings table{};  // columns of text files
};

// The model and its rows ([model]).
struct ModelConfig {
  std::string name = "complex";
  std::int64_t dim = 100;
  std::string init = "normal";
  double init_scale = 0.1;
  std::string value_type = "float32";
};

// Optimizer of the rows ([optimizer]).
struct OptimizerConfig {
  std::string kind = "adagrad";
  double learning_rate = 0.1;
  double epsilon = 1e-8;
  double initial_accumulator = 0;
  double l2 = 0;
  double clip_norm = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double l1 = 0;
  double beta = 1;
  std::string schedule = "constant";
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;  // 0: the length of the run
  double min_factor = 0;
};

// Optimizer of dense layers, and compression of their gradients ([dense]).
struct DenseConfig {
  std::string optimizer = "adam";
  double learning_rate = 0.001;
  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double initial_accumulator = 0;
  double weight_decay = 0;
  double l1 = 0;
  double l2 = 0;
  double beta = 1;
  std::string precision = "fp32";  // of products on a GPU
  // Allreduce between ranks.
  std::string compression = "none";
  double density = 0.01;
  double initial_density = 0.25;
  std::int64_t warmup_steps = 0;
  bool momentum_correction = false;
  std::string codec = "bfloat16";
  std::string algorithm = "auto";
};

// Compression of the rows of all tables between ranks, in one direction.
struct CompressionConfig {
  std::string codec = "lossless";
  std::int64_t top_k = 0;
  std::int64_t age_max = 0;
  double density = 0.1;
  double threshold_max = 1e30;
  std::int64_t capacity_rows = 1 << 18;
};

// Steps, batches and validation of the training ([train]).
struct TrainConfig {
  std::int64_t epochs = 20;
  std::int64_t steps = 0;  // 0: `epochs` sets the length
  std::int64_t batch_size = 1024;
  std::int64_t microbatches = 0;  // 0: the larger of 8 and the number of ranks
  std::int64_t lookahead = 0;     // 0: see lookahead_steps()
  bool prefetch_thread = true;
  bool reuse_batches = false;
  std::int64_t seed = 1;
  std::int64_t validate_every = 1;
  std::int64_t checkpoint_every = 1;
  std::int64_t patience = 0;
  bool keep_best = true;
  std::int64_t expire_after = 0;  // 0: never
};

// Where rows are ([placement]).
struct PlacementConfig {
  std::string initial = "hash";
  std::string policy = "auto";
  std::int64_t bytes_min = -1;      // see StoreOptions::placement_bytes_min
  std::int64_t ranks_per_host = 0;  // 0: those that the group knows
  double replica_fraction = 0.1;
  std::int64_t staleness = 0;
  std::int64_t trace_steps = 0;  // 0: no trace
};

// Evaluation ([eval]).
struct EvalConfig {
  std::vector<std::int64_t> hits{1, 3, 10};
};

// Device, threads and folder of the run ([run]).
struct RunConfig {
  std::string folder{};
  std::string device = "auto";
  std::int64_t threads = 0;
  std::int64_t ranks = 1;
  std::int64_t report_every = 100;
};

// Ranks as processes.
struct ClusterConfig {
  double join_timeout_s = 120;
  double peer_timeout_s = 30;
  double wait_timeout_s = 300;
  bool nccl = true;  // between GPUs
  std::string key_format = "auto";
};

class TaskKind;  // trainer/config/task_kind.hpp
using TaskKinds = std::span<TaskKind const* const>;

// The kind of task that data.reader selects, and its settings.
struct TaskSettings {
  std::vector<TaskKind const*> kinds{};  // among which data.reader selects
  TaskKind const* kind = nullptr;        // one of them
  std::any values{};                     // of the keys that only this kind has
};

// A configuration. Members that belong to keys which the kind of task does not have have no effect.
struct Config {
  DataConfig data;
  ModelConfig model;
  OptimizerConfig optimizer;
  DenseConfig dense;
  CompressionConfig gradient_compression;
  CompressionConfig refresh_compression;
  TrainConfig train;
  PlacementConfig placement;
  EvalConfig eval;
  RunConfig run;
  ClusterConfig cluster;
  TaskSettings task;

  // Returns the settings that only the kind of task has. REQUIRES: Settings is the type that this kind has for them.
  template <class Settings>
  Settings& settings() {
    return const_cast<Settings&>(std::as_const(*this).settings<Settings>());
  }
  template <class Settings>
  Settings const& settings() const {
    Settings const* const values = std::any_cast<Settings>(&task.values);
    GPUPS_ASSERT(values != nullptr);
    return *values;
  }
};

// A setting that replaces one of the file.
struct SettingOverride {
  std::string setting;  // "section.key=value"
  std::string typed;    // the option on the command line, for messages

  SettingOverride(std::string section_key_value) : setting(std::move(section_key_value)), typed("--set " + setting) {}
  SettingOverride(char const* section_key_value) : SettingOverride(std::string(section_key_value)) {}
  SettingOverride(std::string section_key_value, std::string what_was_typed)
      : setting(std::move(section_key_value)), typed(std::move(what_was_typed)) {}
};

// Reads a configuration file and applies overrides to it. Paths in the file are relative to its folder, paths in
// overrides to the working directory. Throws Error, with file and line, for a key that is unknown or has no effect in
// this configuration, and for a value that has the wrong type or is out of range. kinds: the kinds of tasks, at least
// one; the first is the default. The kinds must outlive the configuration. trainer/tasks/task_kinds.hpp has the same
// functions for all kinds of the trainer.
Config load_config(std::filesystem::path const& file, std::vector<SettingOverride> const& overrides, TaskKinds kinds);
// The same for text. Messages use `name` as the name of the file; relative paths begin at `folder`.
Config parse_config(std::string const& text, std::string const& name, std::filesystem::path const& folder,
                    std::vector<SettingOverride> const& overrides, TaskKinds kinds);

// Returns the configuration of a saved run for a command other than train, with overrides. The number of ranks is 1
// unless an override sets it. folder: the run's folder.
Config saved_config(Config const& saved, std::filesystem::path const& folder,
                    std::vector<SettingOverride> const& overrides);

// Returns the whole configuration as TOML. Parsing the text gives the same configuration.
std::string resolved(Config const& config);

// Returns the settings that all ranks of a run must share, as pairs of key and value: all settings except paths and the
// sections [run] and [cluster].
std::vector<std::pair<std::string, std::string>> common_settings(Config const& config);

// A key that has different values in two configurations.
struct Difference {
  std::string key, a, b;  // for example "model.dim", "100", "200"
};
// Returns the differences in settings that must not change when a run resumes: data, model, optimizer and batches.
std::vector<Difference> resume_differences(Config const& a, Config const& b);

// Throws Error for settings that contradict each other. name: of the configuration, for messages.
void require_consistent(Config const& config, std::string const& name);
// Throws Error if train.batch_size is 0 and the kind of task does not choose it. origin: of the setting, for messages.
void require_batch_size(Config const& config, std::string const& origin);
// Throws Error if the learning rate changes, although rows are updated by FTRL.
void require_constant_schedule(Config const& config, std::string const& name);
// Throws Error if the device does not train with dense.precision.
void require_precision(Config const& config, Device device);
// Throws Error if data.train is empty.
void require_train_file(Config const& config, std::string const& name);
// Throws Error if a setting of [gradient_compression] or [dense] compresses nothing in the configuration's model, or if
// a part of the model has no effect. For new runs only: a resumed run must keep its settings.
void require_effect(Config const& config, std::string const& name);
// Returns whether the policy may move rows. Runs replace "auto" by the policy that it stands for.
bool rows_move(Config const& config);
// Returns the number of steps that a run on `ranks` ranks prepares ahead.
std::int64_t lookahead_steps(Config const& config, int ranks);
// Returns the steps that the policy considers, so that all batches are announced in time: see
// StoreOptions::placement_window. While a step is trained, one step less than `lookahead` may be prepared.
int placement_window(std::int64_t lookahead);
// Returns a sentence for each learning rate of 0, with which what it is for does not learn.
std::vector<std::string> zero_learning_rates(Config const& config);
// Returns a sentence if train.patience cannot end a run, or nothing. validations: those before the last step.
std::string idle_patience(Config const& config, std::int64_t validations);

}  // namespace gpups::trainer
