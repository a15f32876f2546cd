// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/model_shape.hpp"

#include "kernels/base/check.hpp"
#include "trainer/config/config_constraints.hpp"
#include "trainer/config/table_settings.hpp"
#include "trainer/tasks/task.hpp"

namespace gpups::trainer {

void require_effect(Config const& config, std::string const& name) {
  if (config.gradient_compression.top_k == 0 && !constraints::kTopK.in(config)) return;
  ModelShape const shape = model_shape(config);
  auto const top_k = static_cast<std::size_t>(config.gradient_compression.top_k);
  GPUPS_REQUIRE(top_k == 0 || top_k < shape.widest_row,
                "{}: gradient_compression.top_k is {} and the widest rows of the model have {} columns (all columns "
                "would be sent, so it would have no effect): set a smaller number, or 0",
                name, top_k, shape.widest_row);
  DenseAllreduceOptions const dense = dense_allreduce_options(config.dense);
  GPUPS_REQUIRE(
      !dense.top_k || shape.largest_layer >= dense.large_from,
      "{}: dense.compression is \"top_k\" and the largest layer of the model has {} numbers, padding included "
      "(layers of fewer than {} are not compressed, so it would have no effect): set dense.compression = \"none\"",
      name, shape.largest_layer, dense.large_from);
}

}  // namespace gpups::trainer
