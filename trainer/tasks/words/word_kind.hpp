// SPDX-License-Identifier: Apache-2.0
// The kind of task for the words of a text, and its settings.
#pragma once

#include <cstdint>

#include "trainer/config/task_kind.hpp"
#include "trainer/tasks/words/skip_gram_task.hpp"

namespace gpups::trainer {

// The settings that only texts have. See docs/words.md.
struct WordSettings {
  SkipGramSettings skip_gram{};
  double subsample = 1e-3;
  std::int64_t min_count = 5;
  std::int64_t words_max = 30'000;  // [eval]
};

TaskKind const& word_kind();

}  // namespace gpups::trainer
