// SPDX-License-Identifier: Apache-2.0
// The settings that only texts have. See docs/words.md.
#pragma once

#include <cstdint>

#include "trainer/tasks/words/skip_gram_settings.hpp"

namespace gpups::trainer {

struct WordSettings {
  SkipGramSettings skip_gram{};
  double subsample = 1e-3;
  std::int64_t min_count = 5;
  std::int64_t words_max = 30'000;  // [eval]
};

}  // namespace gpups::trainer
