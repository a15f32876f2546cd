// SPDX-License-Identifier: Apache-2.0
#include "trainer/accounts/metrics.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace gpups::trainer {

namespace {

constexpr std::pair<char const*, std::uint64_t TrafficByKind::*> kKinds[] = {
    {"gradients", &TrafficByKind::gradients},   {"refreshes", &TrafficByKind::refreshes},
    {"intents", &TrafficByKind::intents},       {"late_fetches", &TrafficByKind::late_fetches},
    {"moves", &TrafficByKind::moves},           {"lookups", &TrafficByKind::lookups},
    {"allreduces", &TrafficByKind::allreduces}, {"control", &TrafficByKind::control}};

nlohmann::json with_all(TrafficByKind const& numbers) {
  nlohmann::json json = nlohmann::json::object();
  for (auto const& [name, kind] : kKinds) json[name] = numbers.*kind;
  return json;
}

nlohmann::json without_zeros(TrafficByKind const& numbers) {
  nlohmann::json json = nlohmann::json::object();
  for (auto const& [name, kind] : kKinds) {
    if (numbers.*kind > 0) json[name] = numbers.*kind;
  }
  return json;
}

}  // namespace

double TrafficReport::compression_ratio() const {
  return Stats{.sent = sent, .saved_bytes = saved_bytes}.compression_ratio();
}

nlohmann::json TrafficReport::compression_ratio_by_kind() const {
  nlohmann::json json = nlohmann::json::object();
  for (auto const& [name, kind] : kKinds) {
    auto const bytes = static_cast<double>(sent.*kind);
    if (bytes > 0) json[name] = (bytes + static_cast<double>(saved_bytes.*kind)) / bytes;
  }
  return json;
}

double TrafficReport::receive_imbalance() const {
  std::uint64_t most = 0, sum = 0;
  for (std::uint64_t const bytes : received) {
    most = std::max(most, bytes);
    sum += bytes;
  }
  return sum == 0 ? 1 : static_cast<double>(most) * static_cast<double>(received.size()) / static_cast<double>(sum);
}

std::vector<std::int64_t> to_terms(Stats const& mine) {
  std::vector<std::int64_t> terms;
  for (TrafficByKind const& numbers :
       {static_cast<TrafficByKind const&>(mine.sent), mine.sent.messages, mine.saved_bytes}) {
    for (auto const& [name, kind] : kKinds) terms.push_back(static_cast<std::int64_t>(numbers.*kind));
  }
  // The bytes that a rank receives are counted by their senders. A receiver's own counters would not match the
  // senders', because ranks read their counters at different times.
  for (PeerTraffic const& peer : mine.peers) terms.push_back(static_cast<std::int64_t>(peer.sent.bytes()));
  return terms;
}

TrafficReport from_sums(std::span<std::int64_t const> sums) {
  TrafficReport traffic_report;
  std::size_t next = 0;
  for (TrafficByKind* numbers : {static_cast<TrafficByKind*>(&traffic_report.sent), &traffic_report.sent.messages,
                                 &traffic_report.saved_bytes}) {
    for (auto const& [name, kind] : kKinds) numbers->*kind = static_cast<std::uint64_t>(sums[next++]);
  }
  while (next < sums.size()) traffic_report.received.push_back(static_cast<std::uint64_t>(sums[next++]));
  return traffic_report;
}

nlohmann::json to_json(Traffic const& traffic) {
  nlohmann::json json = with_all(traffic);
  json["messages"] = traffic.messages.total();
  return json;
}

nlohmann::json to_json(RoundSeconds const& s) {
  return {{"gradients", s.gradients}, {"update", s.update}, {"refreshes", s.refreshes}, {"waiting", s.waiting}};
}

nlohmann::json to_json(TrafficReport const& traffic_report) {
  return {{"sent", to_json(traffic_report.sent)},
          {"saved_bytes", with_all(traffic_report.saved_bytes)},
          {"received", traffic_report.received},
          {"receive_imbalance", traffic_report.receive_imbalance()},
          {"compression_ratio", traffic_report.compression_ratio()},
          {"compression_ratio_by_kind", traffic_report.compression_ratio_by_kind()}};
}

nlohmann::json wait_pairs(Store& store, Stats const& mine) {
  nlohmann::json of_me = nlohmann::json::array();
  for (std::size_t to = 0; to < mine.peers.size(); ++to) {
    if (to == number(store.rank())) continue;
    Traffic const& sent = mine.peers[to].sent;
    of_me.push_back({{"from", number(store.rank())},
                     {"to", to},
                     {"bytes", without_zeros(sent)},
                     {"messages", without_zeros(sent.messages)}});
  }
  nlohmann::json pairs = nlohmann::json::array();
  auto const of_ranks = store.wait_gather_to(Rank{0}, of_me.dump());
  if (store.rank() != Rank{0}) return pairs;
  for (std::string const& of_one : of_ranks) {
    for (auto& pair : nlohmann::json::parse(of_one)) pairs.push_back(std::move(pair));
  }
  return pairs;
}

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
                                    {"late_batches", &Stats::late_batches, &RowReport::late_batches},
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
