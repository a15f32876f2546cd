// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/ratings/factor_tables.hpp"

#include "trainer/config/table_settings.hpp"

namespace gpups::trainer {

std::size_t factor_dim(ModelConfig const& model) {
  return static_cast<std::size_t>(model.dim) + (model.biases ? 1 : 0);
}

std::vector<TableOptions> factor_tables(Config const& config, std::size_t rows, std::size_t columns,
                                        std::int64_t schedule_steps) {
  std::size_t const dim = factor_dim(config.model);
  return {vector_table(config, "rows", dim, rows, schedule_steps),
          vector_table(config, "columns", dim, columns, schedule_steps)};
}

}  // namespace gpups::trainer
