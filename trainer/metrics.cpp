// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace gpups::trainer {

double Progressed::loss_mean() const {
  return static_cast<double>(loss) / 1073741824.0 / static_cast<double>(std::max<std::int64_t>(samples, 1));
}

double Progressed::samples_per_s() const { return seconds > 0 ? static_cast<double>(samples) / seconds : 0; }

Totals wait_totals(Store& store, Progressed const& mine, Traffic const& sent) {
  std::int64_t sums[] = {mine.loss,
                         mine.samples,
                         static_cast<std::int64_t>(sent.gradients),
                         static_cast<std::int64_t>(sent.refreshes),
                         static_cast<std::int64_t>(sent.intents),
                         static_cast<std::int64_t>(sent.urgent),
                         static_cast<std::int64_t>(sent.lookups),
                         static_cast<std::int64_t>(sent.reductions),
                         static_cast<std::int64_t>(sent.control),
                         static_cast<std::int64_t>(sent.messages)};
  store.wait_sum(sums);
  auto const unsigned_of = [&sums](std::size_t i) { return static_cast<std::uint64_t>(sums[i]); };
  return {.progressed = {.loss = sums[0], .samples = sums[1], .seconds = mine.seconds},
          .sent = {.gradients = unsigned_of(2),
                   .refreshes = unsigned_of(3),
                   .intents = unsigned_of(4),
                   .urgent = unsigned_of(5),
                   .lookups = unsigned_of(6),
                   .reductions = unsigned_of(7),
                   .control = unsigned_of(8),
                   .messages = unsigned_of(9)}};
}

nlohmann::json to_json(Traffic const& t) {
  return {{"gradients", t.gradients}, {"refreshes", t.refreshes},   {"intents", t.intents}, {"urgent", t.urgent},
          {"lookups", t.lookups},     {"reductions", t.reductions}, {"control", t.control}, {"messages", t.messages}};
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
