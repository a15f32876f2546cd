// SPDX-License-Identifier: Apache-2.0
// Predicts ratings from rows that are looked up, many ratings at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/ratings/rating_metrics.hpp"
#include "trainer/ratings/rating_set.hpp"

namespace gpups::trainer {

// The tables of a factorization.
inline constexpr TableId kRowsTable{0}, kColumnsTable{1};

// Returns the bytes that wait_predict() needs for rows of this dim.
std::uint64_t predictor_bytes(std::size_t dim);

// Predicts this rank's share of the ratings and returns their errors. Blocks. Collective, between steps.
RatingSums wait_predict(Stream& stream, Store& store, RatingSet const& set, std::span<Rating const> ratings);

}  // namespace gpups::trainer
