// SPDX-License-Identifier: Apache-2.0
// Predicts ratings by look-ups, many at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/ratings/rating_metrics.hpp"
#include "trainer/ratings/rating_set.hpp"

namespace gpups::trainer {

// The tables of a factorization.
inline constexpr TableId kRowsTable{0}, kColumnsTable{1};

// What wait_predict() takes for rows of this dim.
std::uint64_t predictor_bytes(std::size_t dim);

// The errors of this rank's share of the ratings. Waits. Collective, between steps.
RatingSums wait_predict(Stream& stream, Store& store, RatingSet const& set, std::span<Rating const> ratings);

}  // namespace gpups::trainer
