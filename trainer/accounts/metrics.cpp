// SPDX-License-Identifier: Apache-2.0
#include "trainer/accounts/metrics.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace gpups::trainer {

namespace {

struct RowCounter {
  char const* name;
  std::uint64_t Stats::*of_rank;
  std::uint64_t RowReport::*of_all;
};

constexpr RowCounter kCounters[] = {{"entries", &Stats::entries, &RowReport::entries},
                                    {"distinct_keys", &Stats::distinct_keys, &RowReport::distinct_keys},
                                    {"remote_keys", &Stats::remote_keys, &RowReport::remote_keys},
                                    {"remote_home_keys", &Stats::remote_home_keys, &RowReport::remote_home_keys},
                                    {"late_keys", &Stats::late_keys, &RowReport::late_keys},
                                    {"moved_rows", &Stats::moved_rows, &RowReport::moved_rows},
                                    {"leased_keys", &Stats::leased_keys, &RowReport::leased_keys},
                                    {"leased_steps", &Stats::leased_steps, &RowReport::leased_steps}};

nlohmann::json to_json(HotRow const& row, Store const& store) {
  return {{"table", store.table(row.table).name},
          {"key", number(row.key)},
          {"owner", number(row.placement.owner)},
          {"home", number(row.placement.home)},
          {"reason", name_of(row.placement.reason)},
          {"since", number(row.placement.since)},
          {"uses", row.uses}};
}

}  // namespace

std::vector<std::int64_t> row_terms(Stats const& mine, Rank me) {
  std::vector<std::int64_t> terms;
  for (RowCounter const& counter : kCounters) terms.push_back(static_cast<std::int64_t>(mine.*counter.of_rank));
  terms.resize(terms.size() + mine.peers.size(), 0);
  terms[std::size(kCounters) + number(me)] = static_cast<std::int64_t>(mine.owned_rows);
  return terms;
}

RowReport row_report_from(std::span<std::int64_t const> sums) {
  RowReport report;
  std::size_t next = 0;
  for (RowCounter const& counter : kCounters) report.*counter.of_all = static_cast<std::uint64_t>(sums[next++]);
  while (next < sums.size()) report.owned_rows.push_back(static_cast<std::uint64_t>(sums[next++]));
  return report;
}

nlohmann::json to_json(RowReport const& report) {
  nlohmann::json json{{"owned_rows", report.owned_rows}};
  for (RowCounter const& counter : kCounters) json[counter.name] = report.*counter.of_all;
  return json;
}

nlohmann::json wait_hottest_rows(Store& store, std::size_t count) {
  nlohmann::json of_me = nlohmann::json::array();
  for (HotRow const& row : store.hottest_rows(count)) of_me.push_back({row.all_uses(), to_json(row, store)});
  std::vector<std::pair<std::uint64_t, nlohmann::json>> rows;
  for (std::string const& of_rank : store.wait_gather_to(Rank{0}, of_me.dump())) {
    if (of_rank.empty()) continue;  // this is not rank 0
    for (auto& row : nlohmann::json::parse(of_rank)) rows.emplace_back(row[0], std::move(row[1]));
  }
  std::stable_sort(rows.begin(), rows.end(), [](auto const& a, auto const& b) { return a.first > b.first; });
  nlohmann::json hottest = nlohmann::json::array();
  for (auto& row : rows) {
    if (hottest.size() < count) hottest.push_back(std::move(row.second));
  }
  return hottest;
}

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
