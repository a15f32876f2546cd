// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/ratings/factor_tables.hpp"

#include "trainer/config/table_settings.hpp"
#include "trainer/tasks/ratings/rating_kind.hpp"

namespace gpups::trainer {

std::size_t factor_dim(Config const& config) {
  return static_cast<std::size_t>(config.model.dim) + (config.settings<RatingSettings>().biases ? 1 : 0);
}

std::vector<TableOptions> factor_tables(Config const& config, std::size_t rows, std::size_t columns,
                                        std::int64_t schedule_steps) {
  std::size_t const dim = factor_dim(config);
  return {vector_table(config, "rows", dim, rows, schedule_steps),
          vector_table(config, "columns", dim, columns, schedule_steps)};
}

}  // namespace gpups::trainer
