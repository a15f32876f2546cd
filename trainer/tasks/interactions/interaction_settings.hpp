// SPDX-License-Identifier: Apache-2.0
// The settings that only interactions have. See docs/interactions.md.
#pragma once

#include <cstdint>

namespace gpups::trainer {

struct InteractionSettings {
  std::int64_t negatives = 8;       // of bpr
  double l2 = 0.003;                // of ials
  double unobserved_weight = 0.02;  // of ials
};

}  // namespace gpups::trainer
