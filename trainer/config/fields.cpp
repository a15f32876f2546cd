// SPDX-License-Identifier: Apache-2.0
// The keys that all kinds of tasks have, and the order of all keys. Groups of keys that several kinds have are in
// field_groups.cpp.
#include "trainer/config/fields.hpp"

#include <algorithm>
#include <iterator>
#include <variant>

#include "kernels/base/assert.hpp"
#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {
namespace {

// The order in which sections are written. Sections that a kind adds follow.
constexpr std::string_view kSections[] = {
    "data",  "model",     "optimizer", "linear", "dense",  "gradient_compression", "refresh_compression",
    "train", "placement", "eval",      "run",    "cluster"};

Constraint const kByEpochs{[](Config const& c) { return c.train.steps == 0; }, "train.steps is set"};
// Whether there are samples for validation. Kinds without the keys decide for themselves.
bool has_validation(Config const& config) {
  bool decides = true;
  for (Field const& field : fields_of(*config.task.kind, config.task.kinds)) {
    bool const is_file = field.name() == "data.valid", is_share = field.name() == "data.valid_share";
    if (!is_file && !is_share) continue;
    decides = false;
    if (field.is_used(config) && (is_file ? !config.data.valid.empty() : config.data.valid_share > 0)) return true;
  }
  return decides;
}

Constraint const kHasPatience{[](Config const& c) { return c.train.patience == 0 || has_validation(c); },
                              "there are no samples for validation: see data.valid and data.valid_share"};
Constraint const kValidated{[](Config const& c) { return c.train.validate_every > 0; }, "train.validate_every is 0"};

// The names of readers or models of all kinds, each once.
std::vector<std::string> names_of(TaskKinds kinds, std::vector<std::string> (TaskKind::*names)() const) {
  std::vector<std::string> all;
  for (TaskKind const* const kind : kinds) {
    for (std::string const& name : (kind->*names)()) {
      if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
    }
  }
  return all;
}

std::vector<Field> data_fields(TaskKinds kinds) {
  return {FieldBuilder("data", "reader", at<&Config::data, &DataConfig::reader>, "format of the data")
              .one_of(names_of(kinds, &TaskKind::readers))
              .fixed_on_resume(),
          FieldBuilder("data", "folder", at<&Config::data, &DataConfig::folder>, "folder of the data files").is_path()};
}

std::vector<Field> model_fields(TaskKinds kinds) {
  return {FieldBuilder("model", "name", at<&Config::model, &ModelConfig::name>, "the model")
              .one_of(names_of(kinds, &TaskKind::models))
              .fixed_on_resume()};
}

// The keys of a direction: section, accessors of its members, and words for messages.
template <auto Section>
std::vector<Field> compression_fields(std::string_view section, std::string_view codec, std::string_view age,
                                      std::string_view capacity, Constraint filters, Constraint compressed) {
  using X = CompressionConfig;
  return {FieldBuilder(section, "codec", at<Section, &X::codec>, codec)
              .one_of({"lossless", "float16", "bfloat16", "int8", "int4"})
              .fixed_on_resume(),
          FieldBuilder(section, "age_max", at<Section, &X::age_max>, age).range(0, 1e9).fixed_on_resume(),
          FieldBuilder(section, "density", at<Section, &X::density>, "requested share of rows that are sent")
              .range(0, 1)
              .fixed_on_resume()
              .only_if(filters),
          FieldBuilder(section, "threshold_max", at<Section, &X::threshold_max>,
                       "upper limit of the adaptive threshold, times the square root of the step")
              .range(0, 1e30)
              .fixed_on_resume()
              .only_if(filters),
          FieldBuilder(section, "capacity_rows", at<Section, &X::capacity_rows>, capacity)
              .range(1, 1 << 30)
              .fixed_on_resume()
              .only_if(compressed)};
}

std::vector<Field> gradient_compression_fields() {
  std::vector<Field> all = compression_fields<&Config::gradient_compression>(
      "gradient_compression", "row codec of gradients", "number of steps that a gradient may wait; 0: no row filter",
      "capacity of the residuals for each other rank, in rows",
      {[](Config const& c) { return c.gradient_compression.age_max > 0; },
       "all gradients are sent at once: set gradient_compression.age_max"},
      {[](Config const& c) { return compresses(c.gradient_compression); },
       "gradients are not compressed: set gradient_compression.codec, top_k or age_max"});
  all.insert(all.begin() + 1,
             FieldBuilder("gradient_compression", "top_k", at<&Config::gradient_compression, &CompressionConfig::top_k>,
                          "number of largest columns of a row that are sent, less than the widest rows have; 0: all")
                 .range(0, 65536)
                 .fixed_on_resume());
  return all;
}

std::vector<Field> refresh_compression_fields() {
  return compression_fields<&Config::refresh_compression>(
      "refresh_compression", "row codec of refreshes", "number of steps that a change may wait; 0: no row filter",
      "capacity of the mirrors for each other rank, in rows",
      {[](Config const& c) { return c.refresh_compression.age_max > 0; },
       "all changes are sent at once: set refresh_compression.age_max"},
      {[](Config const& c) { return compresses(c.refresh_compression); },
       "refreshes are not compressed: set refresh_compression.codec or age_max"});
}

template <auto Member>
constexpr FieldAccessor kTrain = at<&Config::train, Member>;

std::vector<Field> train_fields() {
  using T = TrainConfig;
  return {
      FieldBuilder("train", "epochs", kTrain<&T::epochs>, "passes over the training data")
          .range(1, 1e6)
          .only_if(kByEpochs)
          .same_in_trials(),
      FieldBuilder("train", "steps", kTrain<&T::steps>, "length of the run in steps; 0: train.epochs sets it")
          .range(0, kMost53)
          .same_in_trials(),
      FieldBuilder(
          "train", "batch_size", kTrain<&T::batch_size>,
          "samples in a step at most, over all ranks; 0: chosen by the size of the data, for kinds whose default is 0")
          .range(0, 1 << 24)
          .fixed_on_resume(),
      FieldBuilder("train", "microbatches", kTrain<&T::microbatches>,
                   "microbatches of a global batch; 0: the larger of 8 and the number of ranks")
          .range(0, 65536),
      FieldBuilder("train", "lookahead", kTrain<&T::lookahead>,
                   "number of steps that are prepared ahead; 0: 20 if rows move between ranks, else 4")
          .range(0, 1024),
      FieldBuilder("train", "prefetch_thread", kTrain<&T::prefetch_thread>,
                   "true: a thread prepares steps; false: the training thread prepares them"),
      FieldBuilder("train", "seed", kTrain<&T::seed>, "seed of initial values, negatives and the order of samples")
          .range(0, kMost53)
          .fixed_on_resume(),
      FieldBuilder("train", "validate_every", kTrain<&T::validate_every>,
                   "epochs between validations; 0: at the end only")
          .range(0, 1e6)
          .same_in_trials(),
      FieldBuilder("train", "checkpoint_every", kTrain<&T::checkpoint_every>,
                   "epochs between checkpoints; 0: at the end only")
          .range(0, 1e6)
          .same_in_trials(),
      FieldBuilder("train", "patience", kTrain<&T::patience>,
                   "validations without improvement after which the run ends; 0: no limit")
          .range(0, 1e6)
          .only_if(kValidated)
          .only_if(kHasPatience)
          .same_in_trials(),
      FieldBuilder("train", "keep_best", kTrain<&T::keep_best>,
                   "true: the result is the model of the best validation; false: that of the last step")
          .only_if(kValidated)
          .same_in_trials(),
  };
}

template <auto Member>
constexpr FieldAccessor kPlacement = at<&Config::placement, Member>;

std::vector<Field> placement_fields() {
  using P = PlacementConfig;
  return {
      FieldBuilder("placement", "policy", kPlacement<&P::policy>,
                   "when rows move between ranks while training; static: never; adaptive: if fewer bytes are sent; "
                   "relocate: to a rank that uses them; auto: adaptive if ranks are on several hosts, else static")
          .one_of({"auto", "static", "relocate", "adaptive"})
          .or_hidden({"random"}),  // for tests: rows move without a reason
      FieldBuilder(
          "placement", "bytes_min", kPlacement<&P::bytes_min>,
          "adaptive leaves rows at home whose value and gradient take fewer bytes; -1: 384 if all ranks are on "
          "one host, else 64")
          .range(-1, kMost53),
      FieldBuilder("placement", "ranks_per_host", kPlacement<&P::ranks_per_host>,
                   "ranks with fast links, one after another; 0: those that are on one host")
          .range(0, 65536),
      FieldBuilder(
          "placement", "replica_fraction", kPlacement<&P::replica_fraction>,
          "rows of other ranks that a rank keeps between steps, as a fraction of its own rows; at least those of "
          "four steps, or with 0 none")
          .range(0, 1),
      FieldBuilder("placement", "staleness", kPlacement<&P::staleness>,
                   "steps by which reads of other ranks' rows may be behind, and their gradients may wait; 0: none")
          .range(0, 65536),
      FieldBuilder("placement", "trace_steps", kPlacement<&P::trace_steps>,
                   "steps after the start or a resume whose keys are recorded for the program replay; 0: none")
          .range(0, kMost53),
  };
}

template <auto Member>
constexpr FieldAccessor kRun = at<&Config::run, Member>;

std::vector<Field> run_fields() {
  return {
      FieldBuilder("run", "folder", kRun<&RunConfig::folder>, "folder of results; empty: runs/NAME-YYYYmmdd-HHMMSS")
          .is_path(),
      FieldBuilder("run", "device", kRun<&RunConfig::device>, "auto, host, cuda or cuda:0"),
      FieldBuilder("run", "threads", kRun<&RunConfig::threads>, "host cores of a rank; 0: an even share")
          .range(0, 65536),
      FieldBuilder("run", "ranks", kRun<&RunConfig::ranks>, "number of ranks, as threads of the program")
          .range(1, 1024),
      FieldBuilder("run", "report_every", kRun<&RunConfig::report_every>, "steps between lines of metrics.jsonl")
          .range(1, kMost53),
  };
}

template <auto Member>
constexpr FieldAccessor kCluster = at<&Config::cluster, Member>;

std::vector<Field> cluster_fields() {
  return {
      FieldBuilder("cluster", "join_timeout_s", kCluster<&ClusterConfig::join_timeout_s>,
                   "seconds in which all processes must join")
          .range(0.1, 1e6),
      FieldBuilder("cluster", "peer_timeout_s", kCluster<&ClusterConfig::peer_timeout_s>,
                   "seconds without a heartbeat after which a process is lost")
          .range(0.1, 1e6),
      FieldBuilder("cluster", "wait_timeout_s", kCluster<&ClusterConfig::wait_timeout_s>,
                   "seconds without progress after which a wait for another rank fails")
          .range(0.1, 1e6),
      FieldBuilder("cluster", "nccl", kCluster<&ClusterConfig::nccl>,
                   "true: GPUs exchange data by NCCL if each rank has its own GPU"),
      FieldBuilder("cluster", "key_format", kCluster<&ClusterConfig::key_format>,
                   "keys between ranks; plain: 8 bytes, which no host thread looks at; dictionary: 1 or 2 bytes for a "
                   "key that was sent before; auto: plain within a host and by NCCL, else dictionary")
          .one_of({"auto", "plain", "dictionary"}),
  };
}

}  // namespace

bool compresses(CompressionConfig const& compression) {
  return compression.codec != "lossless" || compression.top_k > 0 || compression.age_max > 0;
}

std::vector<Field> only_if(Constraint when, std::vector<Field> fields) {
  for (Field& field : fields) field.constraints.push_back(when);
  return fields;
}

std::vector<Field> joined(std::vector<std::vector<Field>> lists) {
  std::vector<Field> all;
  for (std::vector<Field>& list : lists) std::move(list.begin(), list.end(), std::back_inserter(all));
  return all;
}

std::vector<Field> fields_of(TaskKind const& kind, TaskKinds known) {
  std::vector<Field> all =
      joined({data_fields(known), model_fields(known), gradient_compression_fields(), refresh_compression_fields(),
              train_fields(), placement_fields(), run_fields(), cluster_fields(), kind.fields()});
  auto const place = [](Field const& field) {
    return std::find(std::begin(kSections), std::end(kSections), field.section) - std::begin(kSections);
  };
  std::stable_sort(all.begin(), all.end(), [&](Field const& a, Field const& b) {
    auto const of_a = place(a), of_b = place(b);
    return of_a != of_b ? of_a < of_b : of_a == std::ssize(kSections) && a.section < b.section;
  });
  for (std::size_t i = 0; i < all.size(); ++i) {  // a key is written once
    for (std::size_t j = 0; j < i; ++j) GPUPS_ASSERT(all[i].name() != all[j].name());
  }
  return all;
}

bool is_used(Config const& config, std::string_view name) {
  for (Field const& field : fields_of(*config.task.kind, config.task.kinds)) {
    if (field.name() == name) return field.is_used(config);
  }
  return false;
}

namespace {

// Sets a key to its value in `from`. Returns whether it had another one.
bool copy_value(Field const& field, Config& from, Config& to) {
  FieldPointer const source = field.pointer(from);
  return std::visit(
      [&source](auto* target) {
        auto const& value = *std::get<decltype(target)>(source);
        bool const differs = *target != value;
        *target = value;
        return differs;
      },
      field.pointer(to));
}

}  // namespace

void reset_unused(Config& config, std::vector<Field const*> const& keys, Config const& defaults) {
  Config from = defaults;
  for (bool changed = true; changed;) {  // a key may have its effect by another one
    changed = false;
    for (Field const* const key : keys) {
      if (!key->is_used(config)) changed = copy_value(*key, from, config) || changed;
    }
  }
}

TaskKind const* kind_with_reader(TaskKinds kinds, std::string_view reader) {
  for (TaskKind const* const kind : kinds) {
    std::vector<std::string> const readers = kind->readers();
    if (std::find(readers.begin(), readers.end(), reader) != readers.end()) return kind;
  }
  return nullptr;
}

}  // namespace gpups::trainer
