// SPDX-License-Identifier: Apache-2.0
// The kind of task for the nodes of a network, and its settings.
#pragma once

#include <cstdint>

#include "trainer/config/task_kind.hpp"
#include "trainer/tasks/words/skip_gram_task.hpp"

namespace gpups::trainer {

// The settings that only networks have. See docs/nodes.md.
struct NodeSettings {
  SkipGramSettings skip_gram{.window = 10};
  bool directed = false;  // [data]
  std::int64_t walks = 10;
  std::int64_t walk_length = 80;
  double p = 1;
  double q = 1;
};

TaskKind const& node_kind();

}  // namespace gpups::trainer
