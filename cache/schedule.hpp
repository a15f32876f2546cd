// SPDX-License-Identifier: Apache-2.0
// The learning rate of a step.
#pragma once

#include "gpups/table.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// What the optimizer's rate is multiplied with at `clock`; in [0, 1].
float learning_rate_factor(Schedule const& schedule, Clock clock);

}  // namespace gpups::cache
