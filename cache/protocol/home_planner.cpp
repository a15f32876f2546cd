// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/home_planner.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "cache/wire/key_coding.hpp"
#include "cache/wire/route_coding.hpp"
#include "kernels/base/check.hpp"

namespace gpups::cache {
namespace {

constexpr std::size_t index_of(RowRole role) { return static_cast<std::size_t>(role); }

Forward forward_of(Rank reader, RowRole role, Clock clock, std::vector<PartKeys> const& parts) {
  Forward forward{.reader = reader, .role = role, .intent = {.clock = clock, .parts = {}}};
  for (auto const& [table, keys] : parts) forward.intent.parts.push_back({table, keys.size()});
  return forward;
}

}  // namespace

void HomePlanner::announce(Rank reader, Clock clock, std::vector<PartKeys> parts) {
  GPUPS_ASSERT(clock > planned_);  // plan() would not see the batch any more
  auto const& batch = announced_[clock].emplace_back(AnnouncedBatch{reader, std::move(parts)});
  if (clock < planned_ + kPolicyWindow) add_uses(clock, batch);
}

// Adds the uses of a batch to those that the policy sees.
void HomePlanner::add_uses(Clock clock, AnnouncedBatch const& batch) {
  if (state_.policy == PlacementPolicy::kStatic) return;
  uses_.resize(state_.tables.size());
  for (auto const& [table, keys] : batch.parts) {
    if (state_.may_move(table)) uses_[number(table)].add(View<Key const>(keys), clock, batch.reader);
  }
}

std::vector<HomePlanner::Plan> HomePlanner::plan(Clock clock) {
  GPUPS_ASSERT(clock > planned_);  // directories know the owners around the last planned step only
  // The policy sees the batches of kPolicyWindow steps. Of those that are announced already, some are new.
  auto const last = announced_.lower_bound(clock + kPolicyWindow);
  for (auto seen = announced_.lower_bound(planned_ + kPolicyWindow); seen != last; ++seen) {
    for (auto const& batch : seen->second) add_uses(seen->first, batch);
  }
  planned_ = clock;
  auto const batches = announced_.extract(clock);
  if (state_.policy != PlacementPolicy::kStatic) move_rows(clock, !batches.empty());
  std::vector<Plan> plans;
  if (batches.empty()) return plans;
  for (auto const& [reader, parts] : batches.mapped()) {
    std::vector<RowOwners> owners;
    for (auto const& [table, keys] : parts) {
      auto const& directory = state_.placement.directories[number(table)];
      owners.push_back(directory.owners_around(View<Key const>(keys), state_.me, clock));
    }
    auto const& plan = plans.emplace_back(make_plan(reader, clock, parts, std::move(owners)));
    for (auto const& [owner, keys] : plan.forwards) forwards_[owner].push_back({reader, clock, keys});
    if (reader == state_.me || !plan.any_away) continue;
    auto const route = encode_route(plan);
    auto& routes = routes_[reader];
    routes.routes.push_back(route.routes[0]);
    routes.bytes->insert(routes.bytes->end(), route.bytes->begin(), route.bytes->end());
  }
  return plans;
}

// Returns true if batches are announced as far ahead of a step as they were for the step before. At the end of
// training, fewer and fewer are.
bool HomePlanner::sees_as_far(Clock clock) {
  auto const ahead = std::distance(announced_.begin(), announced_.lower_bound(clock + kPolicyWindow));
  return ahead >= std::exchange(steps_ahead_, ahead);
}

// Lets the policy choose the owners of all rows that batches use in a step.
void HomePlanner::move_rows(Clock clock, bool is_used) {
  uses_.resize(state_.tables.size());
  bool const count_uses = is_used && sees_as_far(clock);
  if (count_uses) hot_rows_.clear();
  for (std::uint32_t t = 0; t < state_.tables.size(); ++t) {
    auto const used = uses_[t].take(clock);
    if (count_uses) hot_rows_.add(TableId{t}, used);
    auto& directory = state_.placement.directories[t];
    auto const before = directory.owners(View<Key const>(used.keys), state_.me, clock);
    auto const owners = choose_owners(state_.has_restored ? PlacementPolicy::kStatic : state_.policy,
                                      {.step = clock,
                                       .bytes = row_bytes(state_.table(TableId{t}).options()),
                                       .keys = used.keys,
                                       .owners = before,
                                       .first_user = used.first,
                                       .users = used.users});
    GPUPS_ASSERT(before.size() == used.keys.size() && owners.size() == used.keys.size());
    std::vector<Key> moved;
    std::vector<Rank> to;
    for (std::size_t i = 0; i < owners.size(); ++i) {
      GPUPS_ASSERT(number(owners[i]) < static_cast<std::uint32_t>(state_.ranks));
      if (owners[i] == before[i]) continue;
      moved.push_back(used.keys[i]);
      to.push_back(owners[i]);
    }
    directory.plan(View<Key const>(moved), to, state_.me, clock, PlacementReason::kPolicy);
  }
}

HomePlanner::Plan HomePlanner::plan_late(Rank reader, Clock clock, std::vector<PartKeys> const& parts) const {
  GPUPS_ASSERT(is_planned(clock));  // rows could still move before the step
  std::vector<RowOwners> owners;
  for (auto const& [table, keys] : parts) {
    // Late fetches are answered when the rows have moved.
    auto const in_step = state_.placement.directories[number(table)].owners(View<Key const>(keys), state_.me, clock);
    owners.push_back({.before = in_step, .in_step = in_step});
  }
  return make_plan(reader, clock, parts, std::move(owners));
}

HomePlanner::Plan HomePlanner::make_plan(Rank reader, Clock clock, std::vector<PartKeys> const& parts,
                                         std::vector<RowOwners> owners) const {
  GPUPS_ASSERT(owners.size() == parts.size());
  Plan plan{.reader = reader, .clock = clock, .own = {.reads = without_keys(parts)}};
  std::vector<PartKeys> updates = without_keys(parts), moves = updates;
  bool differ = false, any_moves = false;
  std::set<std::pair<TableId, Key>> moved;  // a row that several parts use moves with the first of them
  auto const add = [&](Rank owner, RowRole role, std::size_t p, Key key) {
    bool const both = role == RowRole::kReadAndUpdate;
    if (owner != state_.me) {
      auto& of_role = plan.forwards[owner][index_of(role)];
      if (of_role.empty()) of_role = without_keys(parts);
      return of_role[p].keys.push_back(key);
    }
    if (both || role == RowRole::kRead) plan.own.reads[p].keys.push_back(key);
    if (both || role == RowRole::kUpdate) updates[p].keys.push_back(key);
    differ = differ || role == RowRole::kRead || role == RowRole::kUpdate;
    if (role == RowRole::kMove) moves[p].keys.push_back(key);
    any_moves = any_moves || role == RowRole::kMove;
  };
  for (std::size_t p = 0; p < parts.size(); ++p) {
    auto const& [before, in_step] = owners[p];
    GPUPS_ASSERT(before.size() == parts[p].keys.size() && in_step.size() == parts[p].keys.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      Key const key = parts[p].keys[i];
      plan.any_away = plan.any_away || before[i] != state_.me || in_step[i] != state_.me;
      if (before[i] == in_step[i]) {
        if (before[i] != reader) add(before[i], RowRole::kReadAndUpdate, p, key);
      } else if (in_step[i] == reader) {
        if (moved.emplace(parts[p].table, key).second) add(before[i], RowRole::kMove, p, key);
      } else {
        if (before[i] != reader) add(before[i], RowRole::kRead, p, key);
        add(in_step[i], RowRole::kUpdate, p, key);
      }
    }
  }
  for (auto& [owner, roles] : plan.forwards) {
    for (auto& role : roles) {
      for (auto& part : role) {
        sort_keys(part.keys);
        auto const repeated = std::adjacent_find(part.keys.begin(), part.keys.end());
        if (repeated == part.keys.end()) continue;
        state_.throw_peer_error(reader, fmt::format("announced key {} of table '{}' twice in a batch",
                                                    number(*repeated), state_.table(part.table).options().name));
      }
    }
  }
  // The reader needs no keys of its own batch, and this rank takes its part of the plan without a message.
  GPUPS_ASSERT(!plan.forwards.contains(reader) && !plan.forwards.contains(state_.me));
  if (differ) plan.own.other_updates = std::move(updates);
  if (any_moves) plan.own.moves = std::move(moves);
  plan.owners = std::move(owners);
  return plan;
}

std::map<Rank, OutgoingForwards> HomePlanner::wait_take_forwards() {
  std::map<Rank, OutgoingForwards> outgoing;
  std::vector<KeyEncoder::List> lists;
  for (auto const& [owner, queued] : forwards_) {
    auto& to = outgoing[owner];
    for (auto const& [reader, clock, roles] : queued) {
      GPUPS_ASSERT(clock == state_.round.clock() + 2);  // owners find the rows when they apply the step before
      for (std::size_t r = 0; r < roles.size(); ++r) {
        if (roles[r].empty()) continue;
        to.forwards.push_back(forward_of(reader, static_cast<RowRole>(r), clock, roles[r]));
        for (auto const& [table, keys] : roles[r]) {
          if (keys.empty()) continue;
          auto& dictionary = encoders_
                                 .try_emplace({owner, table}, state_.dictionary_capacity(
                                                                  table, state_.plain_keys.sent_to[number(owner)]))
                                 .first->second;
          lists.push_back({&dictionary, View<Key const>(keys), clock, to.bytes.get()});
        }
      }
    }
  }
  KeyEncoder::wait_encode_keys(state_.on_host, lists, state_.round.clock());
  forwards_.clear();
  return outgoing;
}

std::map<Rank, OutgoingRoutes> HomePlanner::take_routes() { return std::exchange(routes_, {}); }

OutgoingForwards HomePlanner::wait_encode_late(Stream& host, Plan const& plan, KeysByRole const& keys) {
  OutgoingForwards outgoing;
  // Late fetches are answered when the rows have moved, so they have one role only.
  for (std::size_t r = 0; r < keys.size(); ++r) {
    GPUPS_ASSERT(keys[r].empty() == (r != index_of(RowRole::kReadAndUpdate)));
  }
  auto const& parts = keys[index_of(RowRole::kReadAndUpdate)];
  outgoing.forwards.push_back(forward_of(plan.reader, RowRole::kReadAndUpdate, plan.clock, parts));
  for (auto const& part : parts) {
    if (part.keys.empty()) continue;
    KeyEncoder(0).wait_encode_keys(host, View<Key const>(part.keys), plan.clock, plan.clock, *outgoing.bytes);
  }
  return outgoing;
}

OutgoingRoutes HomePlanner::encode_route(Plan const& plan) const {
  OutgoingRoutes outgoing;
  auto& route = outgoing.routes.emplace_back(Route{.clock = plan.clock, .away = {}, .moved = {}});
  for (auto const& [before, in_step] : plan.owners) {
    std::vector<Rank> const home(before.size(), state_.me);
    route.away.push_back(cache::encode_route(before, home, state_.ranks, *outgoing.bytes));
    route.moved.push_back(cache::encode_route(in_step, before, state_.ranks, *outgoing.bytes));
  }
  return outgoing;
}

}  // namespace gpups::cache
