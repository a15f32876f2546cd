// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/home_planner.hpp"

#include <algorithm>
#include <utility>

#include "cache/wire/key_coding.hpp"
#include "cache/wire/route_coding.hpp"

namespace gpups::cache {
namespace {

Forward forward_of(Rank reader, Clock clock, std::vector<PartKeys> const& parts) {
  Forward forward{.reader = reader, .intent = {.clock = clock, .parts = {}}};
  for (auto const& [table, keys] : parts) forward.intent.parts.push_back({table, keys.size()});
  return forward;
}

}  // namespace

std::optional<HomePlanner::Plan> HomePlanner::plan(Rank reader, std::vector<PartKeys> const& parts) {
  auto const& directories = state_.placement.directories;
  if (std::all_of(parts.begin(), parts.end(),
                  [&](auto const& part) { return directories[number(part.table)].empty(); })) {
    return std::nullopt;
  }
  Plan plan;
  for (auto const& [table, keys] : parts) {
    std::size_t const p = plan.here.size();
    auto const& owners = plan.owners.emplace_back(directories[number(table)].owners(View<Key const>(keys), state_.me));
    auto& here = plan.here.emplace_back(PartKeys{table, {}});
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (owners[i] == state_.me) {
        here.keys.push_back(keys[i]);
        continue;
      }
      plan.any_away = true;
      if (owners[i] == reader) continue;  // the route is enough
      auto& away = plan.forwards[owners[i]];
      if (away.empty()) {
        for (auto const& part : parts) away.push_back({part.table, {}});
      }
      away[p].keys.push_back(keys[i]);
    }
  }
  for (auto& [owner, away] : plan.forwards) {
    for (auto& part : away) sort_keys(part.keys);
  }
  if (!plan.any_away) return std::nullopt;
  return plan;
}

void HomePlanner::queue(Rank reader, Clock clock, Plan plan) {
  if (reader != state_.me) {
    auto const route = encode_route(clock, plan);
    auto& routes = routes_[reader];
    routes.routes.push_back(route.routes[0]);
    routes.bytes->insert(routes.bytes->end(), route.bytes->begin(), route.bytes->end());
  }
  for (auto& [owner, parts] : plan.forwards) forwards_[owner].push_back({reader, clock, std::move(parts)});
}

std::map<Rank, OutgoingForwards> HomePlanner::wait_take_forwards() {
  std::map<Rank, OutgoingForwards> outgoing;
  std::vector<KeyEncoder::List> lists;
  for (auto const& [owner, queued] : forwards_) {
    auto& to = outgoing[owner];
    for (auto const& [reader, clock, parts] : queued) {
      to.forwards.push_back(forward_of(reader, clock, parts));
      for (auto const& [table, keys] : parts) {
        if (keys.empty()) continue;
        auto& dictionary = encoders_.try_emplace({owner, table}, state_.dictionary_capacity(table)).first->second;
        lists.push_back({&dictionary, View<Key const>(keys), clock, to.bytes.get()});
      }
    }
  }
  KeyEncoder::wait_encode_keys(state_.on_host, lists, state_.round.clock());
  forwards_.clear();
  return outgoing;
}

std::map<Rank, OutgoingRoutes> HomePlanner::take_routes() { return std::exchange(routes_, {}); }

OutgoingForwards HomePlanner::wait_encode_late(Stream& host, Rank reader, Clock clock,
                                               std::vector<PartKeys> const& parts) {
  OutgoingForwards outgoing;
  outgoing.forwards.push_back(forward_of(reader, clock, parts));
  for (auto const& part : parts) {
    if (part.keys.empty()) continue;
    KeyEncoder(0).wait_encode_keys(host, View<Key const>(part.keys), clock, clock, *outgoing.bytes);
  }
  return outgoing;
}

OutgoingRoutes HomePlanner::encode_route(Clock clock, Plan const& plan) const {
  OutgoingRoutes outgoing;
  auto& route = outgoing.routes.emplace_back(Route{.clock = clock, .away = {}});
  for (auto const& owners : plan.owners) {
    route.away.push_back(cache::encode_route(owners, state_.me, *outgoing.bytes));
  }
  return outgoing;
}

}  // namespace gpups::cache
