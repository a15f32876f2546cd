// SPDX-License-Identifier: Apache-2.0
// The settings that only networks have. See docs/nodes.md.
#pragma once

#include <cstdint>

#include "trainer/tasks/words/skip_gram_settings.hpp"

namespace gpups::trainer {

struct NodeSettings {
  SkipGramSettings skip_gram{.window = 10};
  bool directed = false;  // [data]
  std::int64_t walks = 10;
  std::int64_t walk_length = 80;
  double p = 1;
  double q = 1;
};

}  // namespace gpups::trainer
