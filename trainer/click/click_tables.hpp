// SPDX-License-Identifier: Apache-2.0
// What a configuration says of a click-through model's tables and layers.
#pragma once

#include <vector>

#include "trainer/click/click_model.hpp"
#include "trainer/task.hpp"

namespace gpups::trainer {

std::vector<TableOptions> click_tables(ClickModel const& model, Config const& config, std::int64_t schedule_steps);
DenseOptions click_dense_options(Config const& config, std::int64_t schedule_steps);
DenseLayers make_click_layers(ClickModel const& model, Config const& config, TaskContext const& context);

}  // namespace gpups::trainer
