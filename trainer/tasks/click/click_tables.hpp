// SPDX-License-Identifier: Apache-2.0
// The options of a click-through model's tables and dense layers, from a configuration.
#pragma once

#include <vector>

#include "trainer/step/task.hpp"
#include "trainer/tasks/click/model/click_model.hpp"

namespace gpups::trainer {

// Returns the options of each table, in the order of Features::tables(). schedule_steps: length of the learning rate's
// schedule, in steps.
std::vector<TableOptions> click_tables(ClickModel const& model, Config const& config, std::int64_t schedule_steps);
DenseOptions click_dense_options(Config const& config, std::int64_t schedule_steps);
// Makes the layers of a model, with memory for as many microbatches as a rank computes in a step.
DenseLayers make_click_layers(ClickModel const& model, Config const& config, TaskContext const& context);

}  // namespace gpups::trainer
