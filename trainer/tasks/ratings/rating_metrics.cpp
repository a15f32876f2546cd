// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/ratings/rating_metrics.hpp"

#include <fmt/format.h>

#include <cmath>

namespace gpups::trainer {

void RatingSums::add(double error) {
  ++ratings_;
  squares_.add(error * error);
  distances_.add(std::fabs(error));
}

Metrics RatingSums::wait_metrics(Store& store) const {
  std::int64_t sums[] = {ratings_, squares_.whole, squares_.rest, distances_.whole, distances_.rest};
  store.wait_allreduce(sums);
  auto const ratings = static_cast<double>(sums[0]);
  double const mse = ExactSum{sums[1], sums[2]}.total() / ratings, mae = ExactSum{sums[3], sums[4]}.total() / ratings;
  return {.json = {{"ratings", sums[0]}, {"mse", mse}, {"rmse", std::sqrt(mse)}, {"mae", mae}},
          .text = fmt::format("mse {:.4g}  rmse {:.4g}  mae {:.4g}", mse, std::sqrt(mse), mae),
          .quality = 1 / (1 + mse)};  // positive, and larger for smaller errors
}

}  // namespace gpups::trainer
