// SPDX-License-Identifier: Apache-2.0
// The mean and the range of training ratings. Predictions need them, so checkpoints have them.
#pragma once

#include <span>

#include "gpups/gpups.hpp"
#include "trainer/tasks/ratings/rating_set.hpp"

namespace gpups::trainer {

// A prediction is not below `lowest` and not above `highest`.
struct RatingScale {
  float mean = 0, lowest = 0, highest = 0;
};

// REQUIRES: ratings is not empty.
RatingScale scale_of(std::span<Rating const> ratings);

Blob to_blob(RatingScale const& scale);
// Returns the scale of a checkpoint's blobs. Throws Error if it is missing.
RatingScale rating_scale(std::span<Blob const> blobs);

}  // namespace gpups::trainer
