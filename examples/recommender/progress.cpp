// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <cmath>
#include <vector>

#include "tables.hpp"

namespace {

std::int64_t log_loss(float logit, bool clicked) {
  return std::llround(0x1p30 * std::log1p(std::exp(static_cast<double>(clicked ? -logit : logit))));
}

}  // namespace

void Progress::add(Impression const& impression, float logit) {
  loss += log_loss(logit, impression.clicked);
  least += log_loss(impression.logit, impression.clicked);
  clicks += impression.clicked ? 1 : 0;
  ++impressions;
}

Report wait_report(gpups::Store& store, Progress const& mine) {
  auto const places = static_cast<std::int64_t>(store.stats().rows_reserved);
  std::vector<std::int64_t> sums{mine.loss, mine.least, mine.clicks, mine.impressions, mine.requests, places};
  store.wait_allreduce(sums);
  std::size_t rows = 0;
  for (Table const table : kAllTables) rows += store.size(gpups::TableId{table});
  auto const impressions = static_cast<double>(sums[3]), clicks = static_cast<double>(sums[2]) / impressions;
  return {.loss = static_cast<double>(sums[0]) * 0x1p-30 / impressions,
          .least = static_cast<double>(sums[1]) * 0x1p-30 / impressions,
          .base = -clicks * std::log(clicks) - (1 - clicks) * std::log(1 - clicks),
          .requests = static_cast<std::size_t>(sums[4]),
          .rows = rows,
          .places = static_cast<std::size_t>(sums[5])};
}
