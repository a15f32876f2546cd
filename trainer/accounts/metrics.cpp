// SPDX-License-Identifier: Apache-2.0
#include "trainer/accounts/metrics.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace gpups::trainer {

double IntervalStats::loss_mean() const {
  return static_cast<double>(loss) / 1073741824.0 / static_cast<double>(std::max<std::int64_t>(samples, 1));
}

double IntervalStats::samples_per_s() const { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }

Totals wait_totals(Store& store, IntervalStats const& mine, Stats const& stats) {
  std::vector<std::int64_t> sums{mine.loss, mine.samples};
  std::vector<std::int64_t> const traffic = to_terms(stats), keys = row_terms(stats, store.rank());
  sums.insert(sums.end(), traffic.begin(), traffic.end());
  sums.insert(sums.end(), keys.begin(), keys.end());
  store.wait_allreduce(sums);
  std::span const all(sums);
  return {.interval = {.loss = sums[0], .samples = sums[1], .seconds = mine.seconds},
          .traffic_report = from_sums(all.subspan(2, traffic.size())),
          .row_report = row_report_from(all.last(keys.size()))};
}

nlohmann::json to_json(StageTimes const& times) {
  nlohmann::json json = nlohmann::json::object();
  for (std::size_t s = 0; s < kStageNames.size(); ++s) json[kStageNames[s]] = times.seconds(Stage{s});
  return json;
}

nlohmann::json peak_memory(Device device) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  nlohmann::json json{{"process", std::int64_t{used.ru_maxrss} * 1024},
                      {"host", memory::usage(Device::host()).bytes_peak}};
  if (!device.is_host()) json["device"] = memory::usage(device).bytes_peak;
  return json;
}

}  // namespace gpups::trainer
