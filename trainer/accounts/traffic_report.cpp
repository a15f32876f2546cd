// SPDX-License-Identifier: Apache-2.0
#include "trainer/accounts/traffic_report.hpp"

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

}  // namespace gpups::trainer
