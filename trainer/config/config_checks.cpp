// SPDX-License-Identifier: Apache-2.0
// Checks of settings that limit each other, for all kinds of tasks.
#include <fmt/format.h>

#include <algorithm>

#include "gpups/placement.hpp"
#include "kernels/base/check.hpp"
#include "trainer/config/table_settings.hpp"
#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {

void require_consistent(Config const& config, std::string const& name) {
  TaskKind const& kind = *config.task.kind;
  auto const known = kind.models();
  GPUPS_REQUIRE(
      std::find(known.begin(), known.end(), config.model.name) != known.end(),
      "{}: model.name is \"{}\" and data.reader is \"{}\" (this model cannot be trained on this data): use one of "
      "{}",
      name, config.model.name, config.data.reader, fmt::join(known, ", "));
  require_batch_size(config, name);
  kind.check(config, name);
  if (config.optimizer.kind == "ftrl" && is_used(config, "optimizer.kind")) require_constant_schedule(config, name);
  DenseConfig const& dense = config.dense;
  GPUPS_REQUIRE(dense.density <= dense.initial_density || !is_used(config, "dense.initial_density"),
                "{}: dense.density is {} and dense.initial_density is {} (during the warm-up the share falls from the "
                "second to the first): set dense.initial_density to at least dense.density, or dense.warmup_steps = 0",
                name, dense.density, dense.initial_density);
  GPUPS_REQUIRE(!config.eval.hits.empty(),
                "{}: eval.hits is empty (no quality would be reported): add a k, for example 10", name);
}

void require_batch_size(Config const& config, std::string const& origin) {
  GPUPS_REQUIRE(config.train.batch_size > 0 || config.task.kind->defaults().train.batch_size == 0,
                "{}: train.batch_size is 0 (out of range: only networks choose it): use a value from 1", origin);
}

void require_constant_schedule(Config const& config, std::string const& name) {
  GPUPS_REQUIRE(config.optimizer.schedule == "constant",
                "{}: optimizer.schedule is \"{}\" and the optimizer of rows is \"ftrl\" (FTRL computes values in "
                "proportion to the learning rate, so rows would shrink with it): set optimizer.schedule = \"constant\"",
                name, config.optimizer.schedule);
}

void require_precision(Config const& config, Device device) {
  GPUPS_REQUIRE(config.dense.precision == "fp32" || !device.is_host(),
                "dense.precision is \"{}\" and the device is the host (it multiplies 32-bit floats only): set "
                "dense.precision = \"fp32\", or train on a GPU",
                config.dense.precision);
}

void require_train_file(Config const& config, std::string const& name) {
  GPUPS_REQUIRE(!config.data.train.empty(),
                "{}: data.train is empty (there are no samples to train on): set it to a file", name);
}

bool rows_move(Config const& config) {
  auto const policy = placement_policy(config.placement.policy);
  return policy != PlacementPolicy::kStatic && policy != PlacementPolicy::kAuto;
}

std::int64_t lookahead_steps(Config const& config, int ranks) {
  if (config.train.lookahead > 0) return config.train.lookahead;
  return ranks > 1 && rows_move(config) ? 20 : 4;
}

int placement_window(std::int64_t lookahead) {
  return static_cast<int>(std::clamp<std::int64_t>(lookahead - 2, 1, StoreOptions().placement_window));
}

std::vector<std::string> zero_learning_rates(Config const& config) {
  std::vector<std::string> sentences;
  Config copy = config;
  for (Field const& field : fields_of(*config.task.kind, config.task.kinds)) {
    if (field.key != "learning_rate" || !field.is_used(config)) continue;
    if (*std::get<double*>(field.pointer(copy)) > 0) continue;
    sentences.push_back(fmt::format("{} is 0: {} keep their first values", field.name(),
                                    field.section == "dense"    ? "dense layers"
                                    : field.section == "linear" ? "weights of single values"
                                                                : "rows"));
  }
  return sentences;
}

std::string idle_patience(Config const& config, std::int64_t validations) {
  // The first validation has none to compare with.
  if (config.train.patience == 0 || validations > config.train.patience) return {};
  return fmt::format(
      "train.patience = {} cannot end this run: it needs {} validations before the last step, and there are {}; raise "
      "train.epochs, or lower train.patience or train.validate_every",
      config.train.patience, config.train.patience + 1, validations);
}

void require_effect(Config const& config, std::string const& name) {
  config.task.kind->check_effect(config, name);
  auto const top_k = static_cast<std::size_t>(config.gradient_compression.top_k);
  DenseAllreduceOptions const dense = dense_allreduce_options(config.dense);
  if (top_k == 0 && !dense.top_k) return;
  ModelShape const shape = config.task.kind->shape(config);
  GPUPS_REQUIRE(top_k == 0 || top_k < shape.widest_row,
                "{}: gradient_compression.top_k is {} and the widest rows of the model have {} columns (all columns "
                "would be sent, so it would have no effect): set a smaller number, or 0",
                name, top_k, shape.widest_row);
  GPUPS_REQUIRE(
      !dense.top_k || shape.largest_layer >= dense.large_from,
      "{}: dense.compression is \"top_k\" and the largest layer of the model has {} numbers, padding included "
      "(layers of fewer than {} are not compressed, so it would have no effect): set dense.compression = \"none\"",
      name, shape.largest_layer, dense.large_from);
}

}  // namespace gpups::trainer
