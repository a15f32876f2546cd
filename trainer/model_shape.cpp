// SPDX-License-Identifier: Apache-2.0
#include "trainer/model_shape.hpp"

#include "kernels/check.hpp"

namespace gpups::trainer {

void require_effect(Config const& config, ModelShape const& shape, std::string const& name) {
  auto const top_k = static_cast<std::size_t>(config.gradients.top_k);
  GPUPS_REQUIRE(
      top_k == 0 || top_k < shape.widest_row,
      "{}: gradients.top_k is {} and the widest rows of the model have {} columns (all of them would be sent, "
      "as without it): set fewer, or 0",
      name, top_k, shape.widest_row);
}

}  // namespace gpups::trainer
