// SPDX-License-Identifier: Apache-2.0
#include "trainer/exchanged.hpp"

#include <algorithm>
#include <utility>

namespace gpups::trainer {
namespace {

constexpr std::pair<char const*, std::uint64_t ByKind::*> kKinds[] = {
    {"gradients", &ByKind::gradients}, {"refreshes", &ByKind::refreshes}, {"intents", &ByKind::intents},
    {"urgent", &ByKind::urgent},       {"lookups", &ByKind::lookups},     {"reductions", &ByKind::reductions},
    {"control", &ByKind::control}};

nlohmann::json with_all(ByKind const& numbers) {
  nlohmann::json json = nlohmann::json::object();
  for (auto const& [name, kind] : kKinds) json[name] = numbers.*kind;
  return json;
}

nlohmann::json without_zeros(ByKind const& numbers) {
  nlohmann::json json = nlohmann::json::object();
  for (auto const& [name, kind] : kKinds) {
    if (numbers.*kind > 0) json[name] = numbers.*kind;
  }
  return json;
}

}  // namespace

double Exchanged::compression() const { return Stats{.sent = sent, .spared = spared}.compression(); }

nlohmann::json Exchanged::compression_by_kind() const {
  nlohmann::json json = nlohmann::json::object();
  for (auto const& [name, kind] : kKinds) {
    auto const bytes = static_cast<double>(sent.*kind);
    if (bytes > 0) json[name] = (bytes + static_cast<double>(spared.*kind)) / bytes;
  }
  return json;
}

double Exchanged::received_max_over_mean() const {
  std::uint64_t most = 0, sum = 0;
  for (std::uint64_t const bytes : received) {
    most = std::max(most, bytes);
    sum += bytes;
  }
  return sum == 0 ? 1 : static_cast<double>(most) * static_cast<double>(received.size()) / static_cast<double>(sum);
}

std::vector<std::int64_t> to_terms(Stats const& mine) {
  std::vector<std::int64_t> terms;
  for (ByKind const& numbers : {static_cast<ByKind const&>(mine.sent), mine.sent.messages, mine.spared}) {
    for (auto const& [name, kind] : kKinds) terms.push_back(static_cast<std::int64_t>(numbers.*kind));
  }
  // By rank what it is sent, not what it has counted: ranks look at different times, and while one sends its counts
  // another has not looked yet.
  for (PeerTraffic const& peer : mine.peers) terms.push_back(static_cast<std::int64_t>(peer.sent.bytes()));
  return terms;
}

Exchanged from_sums(std::span<std::int64_t const> sums) {
  Exchanged exchanged;
  std::size_t next = 0;
  for (ByKind* numbers : {static_cast<ByKind*>(&exchanged.sent), &exchanged.sent.messages, &exchanged.spared}) {
    for (auto const& [name, kind] : kKinds) numbers->*kind = static_cast<std::uint64_t>(sums[next++]);
  }
  while (next < sums.size()) exchanged.received.push_back(static_cast<std::uint64_t>(sums[next++]));
  return exchanged;
}

nlohmann::json to_json(Traffic const& traffic) {
  nlohmann::json json = with_all(traffic);
  json["messages"] = traffic.messages.total();
  return json;
}

nlohmann::json to_json(RoundSeconds const& s) {
  return {{"in", s.in}, {"apply", s.apply}, {"out", s.out}, {"waiting", s.waiting}};
}

nlohmann::json to_json(Exchanged const& exchanged) {
  return {{"sent", to_json(exchanged.sent)},        {"spared", with_all(exchanged.spared)},
          {"received", exchanged.received},         {"received_max_over_mean", exchanged.received_max_over_mean()},
          {"compression", exchanged.compression()}, {"compression_by_kind", exchanged.compression_by_kind()}};
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
  auto const said = store.wait_gather_to(Rank{0}, of_me.dump());
  if (store.rank() != Rank{0}) return pairs;
  for (std::string const& of_one : said) {
    for (auto& pair : nlohmann::json::parse(of_one)) pairs.push_back(std::move(pair));
  }
  return pairs;
}

}  // namespace gpups::trainer
