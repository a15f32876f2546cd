// SPDX-License-Identifier: Apache-2.0
// Predicts ratings by look-ups, many at a time.
#pragma once

#include <span>

#include "trainer/ratings/rating_metrics.hpp"
#include "trainer/ratings/rating_set.hpp"

namespace gpups::trainer {

// The tables of a factorization.
inline constexpr TableId kRowsTable{0}, kColumnsTable{1};

// The errors of this rank's share of the ratings. Waits. Collective, between steps.
RatingSums wait_predict(Stream& stream, Store& store, RatingSet const& set, std::span<Rating const> ratings);

}  // namespace gpups::trainer
