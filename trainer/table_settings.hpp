// SPDX-License-Identifier: Apache-2.0
// What a configuration says of tables and layers, in the library's words.
#pragma once

#include "gpups/table.hpp"
#include "kernels/dense/update_dense.hpp"
#include "trainer/config.hpp"
#include "trainer/dense_sums.hpp"

namespace gpups::trainer {

Initializer initializer(ModelConfig const& model);
NumberType row_values(ModelConfig const& model);
Optimizer row_optimizer(OptimizerConfig const& optimizer);
Optimizer weights_optimizer(WeightsConfig const& weights);
// For a table with rows of this dim.
RowTransfer row_transfer(TransferConfig const& transfer, std::size_t dim);
kernels::DenseOptimizer dense_optimizer(DenseConfig const& dense);
DenseExchange dense_exchange(DenseConfig const& dense);

// run_steps: where a schedule ends that the configuration gives no end.
Schedule schedule(OptimizerConfig const& optimizer, std::int64_t run_steps);

}  // namespace gpups::trainer
