// SPDX-License-Identifier: Apache-2.0
// The kind of task for click-through models, and its settings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpups/table.hpp"
#include "trainer/config/fields.hpp"
#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {

// Optimizer of the linear part of a model ([linear]).
struct LinearConfig {
  std::string kind = "adagrad";
  double learning_rate = 0.05;
  double initial_accumulator = 1e-5;
  double l2 = 0;
  double l1 = 0;
  double beta = 1;
  std::int64_t admission_count = 1;
};

// The settings that only click data has. See docs/recommender.md.
struct ClickSettings {
  // [data]
  std::int64_t numeric_columns = 13;
  std::int64_t categorical_columns = 26;
  std::vector<std::string> multi_hot{};
  std::vector<std::string> weighted{};
  std::string order = "shuffled";
  // [model]
  std::string numeric_features = "log";
  std::int64_t buckets = 1;
  std::string pooling = "sum";
  std::vector<std::string> dims{};
  std::vector<std::string> shared{};
  std::int64_t admission_count = 1;
  std::int64_t min_count = 0;
  std::vector<std::int64_t> bottom{512, 256, 64};
  std::vector<std::int64_t> top{512, 256};
  std::int64_t cross_layers = 3;
  bool wide = false;
  double row_dropout = 0;
  double dropout = 0;
  LinearConfig linear{};
  bool progressive = false;         // [eval]
  std::int64_t reader_threads = 0;  // [run]; 0: one for each core
};

// Converts the settings of the linear part.
Optimizer linear_optimizer(LinearConfig const& linear);

TaskKind const& click_kind();

}  // namespace gpups::trainer
