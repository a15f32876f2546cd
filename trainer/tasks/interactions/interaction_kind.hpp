// SPDX-License-Identifier: Apache-2.0
// The kind of task for implicit feedback: which users chose which items, and its settings.
#pragma once

#include <cstdint>

#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {

// The settings that only interactions have. See docs/interactions.md.
struct InteractionSettings {
  std::int64_t negatives = 8;       // of bpr
  double l2 = 0.003;                // for each interaction
  double unobserved_weight = 0.02;  // of ials
};

TaskKind const& interaction_kind();

}  // namespace gpups::trainer
