// SPDX-License-Identifier: Apache-2.0
// learning_rate_factor()

#include <algorithm>
#include <cmath>
#include <numbers>

#include "gpups/table.hpp"

namespace gpups {

float learning_rate_factor(Schedule const& schedule, Clock clock) {
  auto const step = static_cast<double>(number(clock));
  auto const warmup = static_cast<double>(schedule.warmup_steps);
  double const rising = step + 1 < warmup ? (step + 1) / warmup : 1.0;
  if (schedule.kind == Schedule::Kind::kConstant || rising < 1.0) return static_cast<float>(rising);

  double const length = std::max(1.0, static_cast<double>(schedule.total_steps) - warmup);
  double const part = std::clamp((step - warmup) / length, 0.0, 1.0);
  double const left =
      schedule.kind == Schedule::Kind::kLinear ? 1.0 - part : 0.5 * (1.0 + std::cos(std::numbers::pi * part));
  return static_cast<float>(schedule.min_factor + (1.0 - schedule.min_factor) * left);
}

}  // namespace gpups
