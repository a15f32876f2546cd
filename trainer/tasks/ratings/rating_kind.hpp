// SPDX-License-Identifier: Apache-2.0
// The kind of task for ratings, which are factorized, and its settings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/config/config.hpp"
#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {

// The settings that only ratings have. See docs/ratings.md.
struct RatingSettings {
  bool biases = true;
  double l2 = 0.1;
};

TaskKind const& rating_kind();

// The tables of a factorization. A row has model.dim factors and, with model.biases, a bias as its last number.
inline constexpr TableId kRowsTable{0}, kColumnsTable{1};

// Returns the numbers of a row.
std::size_t factor_dim(Config const& config);
// Returns the tables, in the order of their ids. rows, columns: their expected number. schedule_steps: see TaskContext.
std::vector<TableOptions> factor_tables(Config const& config, std::size_t rows, std::size_t columns,
                                        std::int64_t schedule_steps);

}  // namespace gpups::trainer
