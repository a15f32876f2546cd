// SPDX-License-Identifier: Apache-2.0
// The settings that only ratings have. See docs/ratings.md.
#pragma once

namespace gpups::trainer {

struct RatingSettings {
  bool biases = true;
};

}  // namespace gpups::trainer
