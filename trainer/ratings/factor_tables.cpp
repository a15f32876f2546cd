// SPDX-License-Identifier: Apache-2.0
#include "trainer/ratings/factor_tables.hpp"

#include "trainer/table_settings.hpp"

namespace gpups::trainer {

std::size_t factor_dim(ModelConfig const& model) {
  return static_cast<std::size_t>(model.dim) + (model.biases ? 1 : 0);
}

std::vector<TableOptions> factor_tables(Config const& config, std::size_t rows, std::size_t columns,
                                        std::int64_t schedule_steps) {
  auto const table = [&](char const* name, std::size_t expected) {
    return TableOptions{.name = name,
                        .dim = factor_dim(config.model),
                        .initializer = initializer(config.model),
                        .optimizer = row_optimizer(config.optimizer),
                        .schedule = schedule(config.optimizer, schedule_steps),
                        .expected_rows = expected,
                        .value_type = row_value_type(config.model)};
  };
  return {table("rows", rows), table("columns", columns)};
}

}  // namespace gpups::trainer
