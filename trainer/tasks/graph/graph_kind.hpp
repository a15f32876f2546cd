// SPDX-License-Identifier: Apache-2.0
// The kind of task for knowledge graphs: triples of a file, or of the WordNet database, and its settings.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/config/fields.hpp"
#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {

// The settings that only knowledge graphs have. See docs/graphs.md.
struct GraphSettings {
  // [model]
  std::string loss = "logistic";
  double temperature = 1;
  std::int64_t negatives = 6;
  std::string sampling = "triple";
  bool reciprocal = false;
  double label_smoothing = 0;
  double entity_dropout = 0;
  double relation_dropout = 0;
  std::int64_t negative_reuse = 8;
  double local_negatives = 0;
  double l2 = 0;
  double n3 = 0;
  std::int64_t norm = 1;
  double margin = 9;
  // [eval]
  std::int64_t samples_max = 0;
  std::string sample = "spread";
};

TaskKind const& graph_kind();

}  // namespace gpups::trainer
