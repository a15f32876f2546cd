// SPDX-License-Identifier: Apache-2.0
// The settings that only knowledge graphs have. See docs/graphs.md.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "trainer/config/fields.hpp"

namespace gpups::trainer {

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

std::vector<Field> graph_fields();
// Sets data.folder, model.init and model.init_scale if they are not given.
void set_graph_defaults(Config& config, std::set<std::string> const& given);

}  // namespace gpups::trainer
