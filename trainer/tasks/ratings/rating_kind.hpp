// SPDX-License-Identifier: Apache-2.0
// The kind of task for ratings, which are factorized, and its settings.
#pragma once

#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {

// The settings that only ratings have. See docs/ratings.md.
struct RatingSettings {
  bool biases = true;
};

TaskKind const& rating_kind();

}  // namespace gpups::trainer
