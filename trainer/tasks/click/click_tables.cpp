// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/click_tables.hpp"

#include "trainer/config/table_settings.hpp"
#include "trainer/tasks/click/click_kind.hpp"

namespace gpups::trainer {

std::vector<TableOptions> click_tables(ClickModel const& model, Config const& config, std::int64_t schedule_steps) {
  ClickSettings const& click = config.settings<ClickSettings>();
  std::vector<TableOptions> tables;
  for (Features::FeatureTable const& table : model.features().tables()) {
    TableOptions options{.name = table.name, .dim = table.dim, .schedule = schedule(config.optimizer, schedule_steps)};
    if (table.weights) {
      options.initializer = {Initializer::Kind::kConstant, 0};
      options.optimizer = linear_optimizer(click.linear);
      options.admission_count = static_cast<std::uint32_t>(click.linear.admission_count);
    } else {
      options.initializer = initializer(config.model);
      options.optimizer = row_optimizer(config.optimizer);
      options.admission_count = static_cast<std::uint32_t>(click.admission_count);
      options.value_type = row_value_type(config.model);
    }
    tables.push_back(options);
  }
  return tables;
}

DenseOptions click_dense_options(Config const& config, std::int64_t schedule_steps) {
  return {.optimizer = dense_optimizer(config.dense),
          .schedule = schedule(config.optimizer, schedule_steps),
          .seed = static_cast<std::uint64_t>(config.train.seed),
          .allreduce = dense_allreduce_options(config.dense)};
}

DenseLayers make_click_layers(ClickModel const& model, Config const& config, TaskContext const& context) {
  // The most microbatches that a rank computes in a step.
  auto const ranks = static_cast<std::size_t>(context.group.size());
  std::size_t const microbatches = (context.microbatches + ranks - 1) / ranks;
  return {context.group, context.device, model.parameters(), microbatches,
          click_dense_options(config, context.schedule_steps)};
}

}  // namespace gpups::trainer
