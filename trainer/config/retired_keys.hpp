// SPDX-License-Identifier: Apache-2.0
// Keys of a configuration that were renamed, for error messages with the new name. Included by config.cpp only.
#pragma once

#include <string>
#include <string_view>

#include "kernels/base/check.hpp"

namespace gpups::trainer {

// A former name, and the new name as it appears in the message.
struct RetiredKey {
  std::string_view before, now;
};

// The former names of sections and keys, up to version 0.1.
inline constexpr RetiredKey kRetiredKeys[] = {
    {"gradients", "[gradient_compression]"},
    {"gradients.share", "gradient_compression.density"},
    {"gradients.bound", "gradient_compression.threshold_max"},
    {"gradients.rows_max", "gradient_compression.capacity_rows"},
    {"gradient_compression.share", "gradient_compression.density"},
    {"gradient_compression.bound", "gradient_compression.threshold_max"},
    {"gradient_compression.rows_max", "gradient_compression.capacity_rows"},
    {"refreshes", "[refresh_compression]"},
    {"refreshes.share", "refresh_compression.density"},
    {"refreshes.bound", "refresh_compression.threshold_max"},
    {"refreshes.rows_max", "refresh_compression.capacity_rows"},
    {"refresh_compression.share", "refresh_compression.density"},
    {"refresh_compression.bound", "refresh_compression.threshold_max"},
    {"refresh_compression.rows_max", "refresh_compression.capacity_rows"},
    {"weights", "[linear]"},
    {"weights.admit_at", "linear.admission_count"},
    {"linear.admit_at", "linear.admission_count"},
    {"dense.exchange", "dense.compression (\"none\" or \"top_k\")"},
    {"dense.density_first", "dense.initial_density"},
    {"optimizer.floor", "optimizer.min_factor"},
    {"data.numbers", "data.numeric_columns"},
    {"data.categories", "data.categorical_columns"},
    {"data.many", "data.multi_hot"},
    {"model.numbers", "model.numeric_features"},
    {"model.values", "model.value_type"},
    {"model.admit_at", "model.admission_count"},
    {"model.rare_below", "model.min_count"},
    {"train.batch", "train.batch_size"},
    {"train.valid_every", "train.validate_every"},
    {"train.keep_batches", "train.reuse_batches"},
    {"train.placement", "placement.initial"},
    {"train.replica_fraction", "placement.replica_fraction"},
};

// Throws Error if `name`, "section" or "section.key", is a former name. The error contains the new name. origin: the
// file and line, or the option, that gives the key.
inline void throw_if_retired(std::string const& name, std::string const& origin) {
  for (auto const& [before, now] : kRetiredKeys) {
    GPUPS_REQUIRE(name != before, "{}: {} was renamed (it would have no effect): write {}", origin, name, now);
  }
}

}  // namespace gpups::trainer
