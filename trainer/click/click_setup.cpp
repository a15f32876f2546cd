// SPDX-License-Identifier: Apache-2.0
#include "trainer/click/click_setup.hpp"

#include "trainer/table_settings.hpp"

namespace gpups::trainer {

std::vector<TableOptions> click_tables(ClickModel const& model, Config const& config, std::int64_t schedule_steps) {
  std::vector<TableOptions> tables;
  for (Features::Table const& table : model.features().tables()) {
    TableOptions options{.name = table.name, .dim = table.dim, .schedule = schedule(config.optimizer, schedule_steps)};
    if (table.weights) {
      options.initializer = {Initializer::Kind::kConstant, 0};
      options.optimizer = weights_optimizer(config.weights);
      options.admit_at = static_cast<std::uint32_t>(config.weights.admit_at);
    } else {
      options.initializer = initializer(config.model);
      options.optimizer = row_optimizer(config.optimizer);
      options.admit_at = static_cast<std::uint32_t>(config.model.admit_at);
      options.values = row_values(config.model);
    }
    tables.push_back(options);
  }
  return tables;
}

DenseOptions click_dense_options(Config const& config, std::int64_t schedule_steps) {
  return {.optimizer = dense_optimizer(config.dense),
          .schedule = schedule(config.optimizer, schedule_steps),
          .seed = static_cast<std::uint64_t>(config.train.seed),
          .exchange = dense_exchange(config.dense)};
}

DenseLayers make_click_layers(ClickModel const& model, Config const& config, TaskPlace const& place) {
  // As many microbatches as the rank with the most computes.
  auto const ranks = static_cast<std::size_t>(place.group.size());
  std::size_t const microbatches = (place.microbatches + ranks - 1) / ranks;
  return {place.group, place.device, model.parameters(), microbatches,
          click_dense_options(config, place.schedule_steps)};
}

}  // namespace gpups::trainer
