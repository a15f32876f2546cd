// SPDX-License-Identifier: Apache-2.0
// Converts a configuration to the options of the store, its tables and dense layers.
#pragma once

#include <string>

#include "gpups/table.hpp"
#include "kernels/dense/update_dense.hpp"
#include "trainer/config/config.hpp"
#include "trainer/dense/dense_gradient_reducer.hpp"

namespace gpups::trainer {

// Return the options that sections of a configuration set. REQUIRES: the configuration is valid.
Initializer initializer(ModelConfig const& model);
DataType row_value_type(ModelConfig const& model);
Optimizer row_optimizer(OptimizerConfig const& optimizer);
Optimizer::Kind optimizer_kind(std::string const& name);
// dim: of the table's rows.
RowCompression row_compression(CompressionConfig const& compression, std::size_t dim);
kernels::DenseOptimizer dense_optimizer(DenseConfig const& dense);
DenseAllreduceOptions dense_allreduce_options(DenseConfig const& dense);

// run_steps: the end of the schedule if optimizer.total_steps is 0.
Schedule schedule(OptimizerConfig const& optimizer, std::int64_t run_steps);

// Returns a table of vectors with the settings of [model] and [optimizer]. rows: their expected number. run_steps: see
// schedule().
TableOptions vector_table(Config const& config, std::string const& name, std::size_t dim, std::size_t rows,
                          std::int64_t run_steps);

}  // namespace gpups::trainer
