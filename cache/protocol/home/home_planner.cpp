// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/home/home_planner.hpp"

#include <algorithm>

#include "kernels/base/check.hpp"
#include "kernels/placement/home_lists.hpp"
#include "kernels/placement/partition.hpp"

namespace gpups::cache {
namespace {

std::uint32_t list_count(std::size_t parts) { return kRowRoles * static_cast<std::uint32_t>(parts); }

}  // namespace

void HomePlanner::announce(Rank reader, Clock clock, std::vector<ListKeys> parts) {
  GPUPS_ASSERT(clock > planned_);  // wait_plan() would not see the batch any more
  uses_.add(clock, {reader, std::move(parts)});
}

// -- the plan of a step --

std::vector<HomePlanner::Plan> HomePlanner::wait_plan() {
  Clock const clock = *std::exchange(expected_, std::nullopt);
  GPUPS_ASSERT(clock > planned_);  // directories know the owners around the last planned step only
  planned_ = clock;
  std::vector<Plan> plans;
  auto const* const step = uses_.at(clock);
  if (step == nullptr) return plans;
  kernels::HostReads reads(state_.stream);
  // Without a policy, the users of rows do not matter.
  auto const used =
      state_.rows_move() ? uses_.list_rows_with_users(state_.stream, clock, reads) : uses_.list_rows(clock);
  auto const lists = wait_list(*step, used, clock, reads);
  queue_forwards(*step, lists, clock);
  auto routes = write_routes(*step, lists, clock);
  for (std::size_t b = 0; b < step->batches.size(); ++b) {
    plans.push_back({step->batches[b].reader, keys_of(*step, lists, b, state_.me), std::move(routes[b])});
  }
  begin(clock);
  return plans;
}

void HomePlanner::begin(Clock step) {
  hot_step_.begin(step, uses_.drop(step), uses_.steps(step + 1, step + kernels::kPolicyWindow));
}

std::vector<kernels::RowsOfTable> HomePlanner::rows_of_tables(UsedRows const& used) const {
  std::vector<kernels::RowsOfTable> tables;
  for (std::uint32_t t = 0; t < used.tables.size(); ++t) {
    auto const& options = state_.table(TableId{t}).options();
    tables.push_back({.first = used.tables[t].first,
                      .size = used.tables[t].size,
                      .bytes = state_.rules.bytes_of(options),
                      .policy = state_.rules.policy_of(options)});
  }
  return tables;
}

// Lets the policy choose the owners of the rows, and makes the lists of all owners.
HomePlanner::StepLists HomePlanner::wait_list(StepUses const& step, UsedRows const& used, Clock clock,
                                              kernels::HostReads& reads) {
  auto& stream = state_.stream;
  kernels::HostsOfRanks hosts;
  if (!state_.rules.hosts.empty()) hosts = {state_.hosts.data(), kBetweenHosts};
  auto const owners = state_.placement.choose(stream, used, rows_of_tables(used), hosts, clock);
  StepLists lists;
  lists.placed = Array<std::uint32_t>(stream.device(), step.uses());
  kernels::place_uses(stream, {.run = {step.keys, step.ranks},
                               .positions = step.positions,
                               .tables = used.tables,
                               .heads = used.heads,
                               .owners = owners.before,
                               .chosen = owners.in_step,
                               .placed = lists.placed});
  for (auto const& batch : step.batches) {
    lists.of_batch.push_back(lists.of_owner);
    lists.of_owner += list_count(batch.parts.size());
  }
  std::vector<kernels::PartUses> parts;
  for (auto const& part : step.parts) {
    auto const& batch = step.batches[part.batch];
    parts.push_back({.uses = part.uses,
                     .reader = number(batch.reader),
                     .first_list = lists.of_batch[part.batch] + static_cast<std::uint32_t>(part.part),
                     .parts = static_cast<std::uint32_t>(batch.parts.size())});
  }
  auto const words = [&](std::size_t size) { return Array<std::uint32_t>(stream.device(), size); };
  std::uint64_t const lists_of_all = std::uint64_t{lists.of_owner} * static_cast<std::uint64_t>(state_.ranks);
  GPUPS_REQUIRE(lists_of_all < kernels::kNoList,
                "a step has {} lists of rows ({} ranks and {} parts of batches are too many for rows that move): use "
                "placement policy 'static', or fewer tables or ranks",
                lists_of_all, state_.ranks, parts.size());
  auto const all = static_cast<std::uint32_t>(lists_of_all);
  auto const list_of = words(2 * step.uses()), items = words(2 * step.uses()), first = words(all + 1),
             away = words(2 * parts.size());
  kernels::list_uses(stream, {.parts = parts,
                              .placed = lists.placed,
                              .home = number(state_.me),
                              .lists_of_owner = lists.of_owner,
                              .list_of = list_of,
                              .away = away});
  kernels::partition_items(stream, {list_of, all, items, first});
  std::vector<std::uint32_t> moved;
  reads.add<std::uint32_t>(first.view(), lists.first);
  reads.add<std::uint32_t>(away.view(), lists.away);
  reads.add<std::uint32_t>(owners.counts.view(), moved);
  reads.wait();
  auto const keys = std::make_shared<Array<Key>>(stream.device(), lists.first.back());
  kernels::take_keys(stream, step.unsorted, items, *keys);
  lists.keys = {.keys = *keys, .memory = keys};
  state_.placement.wait_plan(stream, used, owners, moved, clock);
  return lists;
}

// Returns the keys of a batch that an owner gets.
KeysByRole HomePlanner::keys_of(StepUses const& step, StepLists const& lists, std::size_t batch, Rank owner) const {
  auto const& parts = step.batches[batch].parts;
  KeysByRole keys;
  auto list = number(owner) * lists.of_owner + lists.of_batch[batch];
  for (auto& of_role : keys) {
    for (auto const& part : parts) of_role.push_back({part.table, lists.of(list++, 1), lists.keys.memory});
  }
  return keys;
}

// Queues the forwards of all owners. The keys of an owner are one after another.
void HomePlanner::queue_forwards(StepUses const& step, StepLists const& lists, Clock clock) {
  for (Rank const owner : state_.others()) {
    auto const keys = lists.of(number(owner) * lists.of_owner, lists.of_owner);
    if (keys.empty()) continue;
    auto& to = forwards_[owner];
    GPUPS_ASSERT(to.plain.empty());  // a step is planned in each round
    to.plain.push_back({.keys = keys, .memory = lists.keys.memory});
    to.keys = keys.size();
    for (std::size_t b = 0; b < step.batches.size(); ++b) {
      Rank const reader = step.batches[b].reader;
      auto const& parts = step.batches[b].parts;
      auto list = number(owner) * lists.of_owner + lists.of_batch[b];
      for (std::size_t r = 0; r < kRowRoles; ++r, list += static_cast<std::uint32_t>(parts.size())) {
        if (lists.of(list, static_cast<std::uint32_t>(parts.size())).empty()) continue;
        GPUPS_ASSERT(reader != owner);  // the reader needs no keys of its own batch
        auto& forward =
            to.forwards.emplace_back(Forward{.reader = reader, .role = static_cast<RowRole>(r), .intent = {clock, {}}});
        for (std::uint32_t p = 0; p < parts.size(); ++p) {
          forward.intent.parts.push_back({parts[p].table, lists.of(list + p, 1).size()});
        }
      }
    }
  }
}

// Writes the routes of all batches, and queues those of other ranks. Returns that of each batch; nullopt: this rank
// owns all rows.
std::vector<std::optional<BatchRoute>> HomePlanner::write_routes(StepUses const& step, StepLists const& lists,
                                                                 Clock clock) {
  auto const bytes_of = [&](std::size_t batch, std::vector<RoutePart> const& parts) {
    std::size_t bytes = 0;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      bytes += route_bytes(step.batches[batch].parts[p].keys.size(), parts[p], state_.ranks);
    }
    return bytes;
  };
  std::vector<Route> routes;
  for (auto const& batch : step.batches) routes.push_back({clock, std::vector<RoutePart>(batch.parts.size())});
  for (std::size_t u = 0; u < step.parts.size(); ++u) {
    routes[step.parts[u].batch].parts[step.parts[u].part] = {lists.away[2 * u] != 0, lists.away[2 * u + 1] != 0};
  }
  std::vector<std::optional<BatchRoute>> written(step.batches.size());
  std::vector<std::shared_ptr<Array<std::uint8_t>>> memory(step.batches.size());
  for (std::size_t b = 0; b < step.batches.size(); ++b) {
    std::size_t const bytes = bytes_of(b, routes[b].parts);
    if (bytes == 0) continue;
    memory[b] = std::make_shared<Array<std::uint8_t>>(state_.stream.device(), bytes);
    written[b] = BatchRoute{std::vector<RouteColumns>(routes[b].parts.size()), memory[b]};
  }
  std::vector<std::size_t> at(step.batches.size(), 0);
  std::vector<kernels::PartRoute> parts;
  // Within a batch, the columns are ordered by part, and uses by table.
  std::vector<StepUses::UsesOfPart> by_part = step.parts;
  std::stable_sort(by_part.begin(), by_part.end(), [](auto const& a, auto const& b) { return a.part < b.part; });
  for (auto const& [b, p, first_use, uses] : by_part) {
    if (!written[b]) continue;
    auto const& part = routes[b].parts[p];
    auto const columns = route_columns(memory[b]->view(), at[b], uses, part, state_.ranks);
    at[b] += route_bytes(uses, part, state_.ranks);
    written[b]->parts[p] = {columns.before, columns.in_step};
    if (part.away || part.moves) parts.push_back({first_use, uses, columns.before, columns.in_step});
  }
  kernels::write_routes(state_.stream, {parts, lists.placed, rank_bytes(state_.ranks)});
  for (std::size_t b = 0; b < step.batches.size(); ++b) {
    Rank const reader = step.batches[b].reader;
    if (!written[b] || reader == state_.me) continue;
    routes_[reader].routes.push_back(routes[b]);
    routes_[reader].columns.push_back(*written[b]);
  }
  return written;
}

std::vector<RankedRow> HomePlanner::wait_hottest_rows(std::size_t most) const {
  return hot_step_.wait_hottest_rows(state_.stream, state_.tables.size(), uses_, most);
}

std::map<Rank, OutgoingForwards> HomePlanner::wait_take_forwards() {
  auto all = std::exchange(forwards_, {});
  std::map<Rank, std::vector<Key>> on_host;
  kernels::HostReads reads(state_.stream);
  for (auto& [owner, to] : all) {
    if (!state_.plain_keys.sent_to[number(owner)]) reads.add<Key>(to.plain[0].keys, on_host[owner]);
  }
  reads.wait();
  std::vector<KeyEncoder::List> lists;
  for (auto const& [owner, keys] : on_host) {
    auto& to = all[owner];
    to.plain.clear();
    std::size_t first = 0;
    for (auto const& forward : to.forwards) {
      GPUPS_ASSERT(forward.intent.clock == state_.round.clock() + 1);  // owners find the rows in this round
      for (auto const& [table, count] : forward.intent.parts) {
        View<Key const> const of_part(keys.data() + std::exchange(first, first + count), count);
        if (count == 0) continue;
        auto& dictionary =
            encoders_.try_emplace({owner, table}, state_.dictionary_capacity(table, false)).first->second;
        lists.push_back({&dictionary, of_part, to.bytes.get()});
      }
    }
  }
  KeyEncoder::encode(state_.on_host, lists);
  return all;
}

// -- late fetches --

HomePlanner::LatePlan HomePlanner::wait_plan_late(Rank reader, Clock clock, std::vector<PartKeys> const& parts) const {
  GPUPS_ASSERT(is_planned(clock));  // rows could still move before the step
  LatePlan plan{.reader = reader, .clock = clock, .own = without_keys(parts), .forwards = {}};
  std::vector<std::uint8_t> bytes;
  Route route{.clock = clock, .parts = std::vector<RoutePart>(parts.size())};
  for (std::size_t p = 0; p < parts.size(); ++p) {
    auto const& [table, keys] = parts[p];
    auto const owners = state_.placement.at(table).wait_owners(state_.stream, View<Key const>(keys), clock);
    route.parts[p].away = std::any_of(owners.begin(), owners.end(), [this](Rank owner) { return owner != state_.me; });
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (owners[i] == state_.me) {
        plan.own[p].keys.push_back(keys[i]);
      } else if (owners[i] != reader) {
        plan.forwards.try_emplace(owners[i], without_keys(parts)).first->second[p].keys.push_back(keys[i]);
      }
    }
    if (!route.parts[p].away) continue;
    std::size_t const first = bytes.size();
    bytes.resize(first + route_bytes(keys.size(), route.parts[p], state_.ranks));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      kernels::write_rank(bytes.data() + first, i, number(owners[i]), rank_bytes(state_.ranks));
    }
  }
  if (bytes.empty()) return plan;
  auto const memory = std::make_shared<Array<std::uint8_t>>(to_device(state_.stream, bytes));
  plan.route = BatchRoute{{}, memory};
  std::size_t at = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    auto const columns = route_columns(memory->view(), at, parts[p].keys.size(), route.parts[p], state_.ranks);
    plan.route->parts.push_back({columns.before, columns.in_step});
    at += route_bytes(parts[p].keys.size(), route.parts[p], state_.ranks);
  }
  return plan;
}

Route late_route(Clock clock, BatchRoute const& route) {
  Route header{.clock = clock, .parts = {}};
  for (auto const& part : route.parts) header.parts.push_back({.away = !part.before.empty(), .moves = false});
  return header;
}

OutgoingForwards encode_late(HomePlanner::LatePlan const& plan, std::vector<PartKeys> const& parts) {
  OutgoingForwards outgoing;
  auto& forward = outgoing.forwards.emplace_back(
      Forward{.reader = plan.reader, .role = RowRole::kReadAndUpdate, .intent = {plan.clock, {}}});
  for (auto const& [table, keys] : parts) {
    forward.intent.parts.push_back({table, keys.size()});
    outgoing.keys += keys.size();
    KeyEncoder(0).encode(View<Key const>(keys), *outgoing.bytes);
  }
  return outgoing;
}

}  // namespace gpups::cache
