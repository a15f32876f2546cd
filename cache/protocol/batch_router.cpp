// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/batch_router.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/index/sort_keys.hpp"
#include "kernels/placement/partition.hpp"
#include "kernels/rows/gather_elements.hpp"

namespace gpups::cache {
namespace {

// Returns whether the home of a row of a part is not its owner, before the step or in it.
bool is_rerouted(PendingBatch const& pending, std::size_t part) {
  return std::any_of(pending.routes.begin(), pending.routes.end(), [&](auto const& route) {
    GPUPS_ASSERT(route.second.parts.size() == pending.batch->parts.size());  // its data have arrived
    auto const& columns = route.second.parts[part];
    return !columns.before.empty() || !columns.in_step.empty();
  });
}

}  // namespace

void BatchRouter::receive(Rank home, Message const& message, std::uint64_t tag, std::function<void()> then) {
  std::uint64_t bytes_expected = 0;
  for (auto const& route : message.routes) {
    auto const found = state_.batches.find(route.clock);
    if (found == state_.batches.end() || !found->second.sent || found->second.routed ||
        found->second.routes.contains(home) || found->second.batch->parts.size() != route.parts.size()) {
      state_.throw_peer_error(home, "sent a route for a batch that was not announced to it");
    }
    found->second.routes[home];  // a second route for the batch is an error
    for (std::size_t p = 0; p < route.parts.size(); ++p) {
      if (route.parts[p].moves && found->second.is_late) {
        state_.throw_peer_error(home, "sent a route with moves for a late fetch");
      }
      bytes_expected += route_bytes(found->second.batch->parts[p].reads.size_of(home), route.parts[p], state_.ranks);
    }
  }
  if (message.route_bytes != bytes_expected) {
    state_.throw_peer_error(home, "sent routes of another size than their rows need");
  }
  auto const bytes = std::make_shared<Array<std::uint8_t>>();
  auto const allocate = [bytes, device = state_.stream.device(), size = message.route_bytes] {
    *bytes = Array<std::uint8_t>(device, size);
    return bytes->data();
  };
  state_.messenger.receive_data(state_.stream, home, tag, message.route_bytes, allocate,
                                [this, home, routes = message.routes, bytes, then = std::move(then)] {
                                  std::size_t at = 0;
                                  for (auto const& route : routes) {
                                    auto& pending = state_.batches.at(route.clock);
                                    auto& received = pending.routes[home];
                                    received.memory = bytes;
                                    for (std::size_t p = 0; p < route.parts.size(); ++p) {
                                      std::size_t const rows = pending.batch->parts[p].reads.size_of(home);
                                      auto const columns =
                                          route_columns(bytes->view(), at, rows, route.parts[p], state_.ranks);
                                      received.parts.push_back({columns.before, columns.in_step});
                                      at += route_bytes(rows, route.parts[p], state_.ranks);
                                    }
                                  }
                                  then();
                                });
}

PositionList BatchRouter::ReroutedParts::lists(std::size_t part, std::uint32_t begin, std::uint32_t count) const {
  auto const of_part = static_cast<std::uint32_t>((first.size() - 1) / parts.size());
  std::size_t const list = part * of_part + begin;
  return {positions->view().slice(first[list], first[list + count] - first[list]), positions};
}

// Returns the lists of all ranks that begin with `list`.
RankLists BatchRouter::rank_lists(ReroutedParts const& rerouted, std::size_t part, std::uint32_t list) const {
  RankLists lists;
  static_cast<PositionList&>(lists) = rerouted.lists(part, list, ranks());
  auto const* const first = &rerouted.first[part * lists_of_part() + list];
  for (std::uint32_t q = 0; q <= ranks(); ++q) lists.first.push_back(first[q] - first[0]);
  return lists;
}

// Makes the lists of all parts with rows that are away from their homes.
BatchRouter::ReroutedParts BatchRouter::wait_list(PendingBatch const& pending) {
  auto& stream = state_.stream;
  auto const& parts = pending.batch->parts;
  ReroutedParts rerouted;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (is_rerouted(pending, p)) rerouted.parts.push_back(p);
  }
  if (rerouted.parts.empty()) return rerouted;
  std::stable_sort(rerouted.parts.begin(), rerouted.parts.end(),
                   [&](std::size_t a, std::size_t b) { return parts[a].table < parts[b].table; });
  std::vector<kernels::RoutedRows> homes;
  std::vector<Rank> home_of;
  std::vector<kernels::ListRows::RowRange> tables;
  std::uint32_t rows = 0;
  for (std::size_t i = 0; i < rerouted.parts.size(); ++i) {
    auto const& part = parts[rerouted.parts[i]];
    for (std::uint32_t h = 0; h < ranks(); ++h) {
      Rank const home{h};
      auto const positions = home == state_.me ? part.own_order.positions : part.reads.of(home);
      auto const route = pending.routes.find(home);
      RouteColumns columns;
      if (route != pending.routes.end()) columns = route->second.parts[rerouted.parts[i]];
      homes.push_back({positions, part.keys, columns.before, columns.in_step, h});
      home_of.push_back(home);
    }
    auto const size = static_cast<std::uint32_t>(part.rows);
    rerouted.rows.push_back({rows, size});
    bool const same_table = i > 0 && parts[rerouted.parts[i - 1]].table == part.table;
    same_table ? void(tables.back().size += size) : tables.push_back({rows, size});
    rows += size;
  }
  auto const words = [&](std::size_t size) { return Array<std::uint32_t>(stream.device(), size); };
  auto const positions = words(rows), wrong = words(homes.size()), list_of = words(3 * std::size_t{rows}),
             differ = words(rerouted.parts.size());
  rerouted.keys = Array<Key>(stream.device(), rows);
  Array<Key> const sorted(stream.device(), rows);
  rerouted.owners = words(rows);
  rerouted.order = words(rows);
  rerouted.items = words(3 * std::size_t{rows});
  kernels::read_routes(stream, {.homes = homes,
                                .ranks = ranks(),
                                .rank_bytes = rank_bytes(state_.ranks),
                                .positions = positions,
                                .owners = rerouted.owners,
                                .keys = rerouted.keys,
                                .wrong = wrong});
  std::vector<kernels::SortedKeys> sorts;
  for (auto const& [first, size] : tables) {
    sorts.push_back({rerouted.keys.view().slice(first, size), sorted.view().slice(first, size),
                     rerouted.order.view().slice(first, size), first});
  }
  kernels::sort_keys(stream, sorts);
  kernels::list_rows(stream, {.tables = tables,
                              .parts = rerouted.rows,
                              .sorted = sorted,
                              .order = rerouted.order,
                              .owners = rerouted.owners,
                              .ranks = ranks(),
                              .me = number(state_.me),
                              .list_of = list_of,
                              .differ = differ});
  auto const lists = static_cast<std::uint32_t>(rerouted.parts.size()) * lists_of_part();
  auto const first = words(lists + 1);
  kernels::partition_items(stream, {list_of, lists, rerouted.items, first});
  kernels::HostReads reads(stream);
  std::vector<std::uint32_t> wrong_homes;
  reads.add<std::uint32_t>(first.view(), rerouted.first);
  reads.add<std::uint32_t>(differ.view(), rerouted.differ);
  reads.add<std::uint32_t>(wrong.view(), wrong_homes);
  reads.wait();
  for (std::size_t i = 0; i < homes.size(); ++i) {
    if (wrong_homes[i] != 0) state_.throw_peer_error(home_of[i], "sent a route to a rank that does not exist");
  }
  auto const taken = std::make_shared<Array<std::uint32_t>>(stream.device(), rerouted.first.back());
  kernels::take_positions(stream, {rerouted.items, rerouted.order, positions, *taken});
  rerouted.positions = taken;
  return rerouted;
}

// Replaces the lists by home by lists by owner.
void BatchRouter::set_lists(PendingBatch& pending, ReroutedParts const& rerouted) {
  for (std::size_t i = 0; i < rerouted.parts.size(); ++i) {
    auto& part = pending.batch->parts[rerouted.parts[i]];
    part.reads = rank_lists(rerouted, i, kernels::reads_list(0));
    if (rerouted.differ[i] != 0) part.other_updates = rank_lists(rerouted, i, kernels::updates_list(ranks(), 0));
    auto arriving = rank_lists(rerouted, i, kernels::arriving_list(ranks(), 0));
    if (arriving.size() > 0) part.arriving = std::move(arriving);
    part.placed = rerouted.lists(i, kernels::placed_list(ranks()), 1);
    part.local_positions = rerouted.lists(i, kernels::local_list(ranks()), 1);
    // The gradient of every row goes to one rank.
    GPUPS_ASSERT(part.local_positions->size() + part.updates().size() == part.rows);
  }
}

// Finds the places of the values that each owner sends for each home.
void BatchRouter::wait_list_answers(PendingBatch& pending, ReroutedParts const& rerouted) {
  auto& stream = state_.stream;
  std::uint32_t const lists = ranks() * ranks();
  std::vector<Array<std::uint32_t>> first;
  kernels::HostReads reads(stream);
  for (std::size_t i = 0; i < rerouted.parts.size(); ++i) {
    auto const* const begin = &rerouted.first[i * lists_of_part()];
    std::uint32_t const values = begin[ranks()] - begin[0];
    Array<std::uint32_t> const list_of(stream.device(), values);
    auto const places = std::make_shared<Array<std::uint32_t>>(stream.device(), values);
    kernels::list_answers(stream, {rerouted.items.view().slice(begin[0], values), rerouted.order, rerouted.owners,
                                   rerouted.keys, ranks(), list_of});
    kernels::partition_items(stream, {list_of, lists, *places, first.emplace_back(stream.device(), lists + 1)});
    auto& answers = pending.late_answers[rerouted.parts[i]];
    answers.places = {places->view(), places};
    reads.add<std::uint32_t>(first.back().view(), answers.first);
  }
  reads.wait();
}

void BatchRouter::wait_route(PendingBatch& pending) {
  auto& parts = pending.batch->parts;
  GPUPS_ASSERT(!pending.routed && !pending.placed);  // the lists by home are replaced once
  state_.remote_home_keys += static_cast<std::uint64_t>(pending.unannounced);
  for (auto const& part : parts) state_.remote_home_keys += part.reads.size();  // still by home
  auto const rerouted = wait_list(pending);
  set_lists(pending, rerouted);
  if (pending.is_late && !rerouted.parts.empty()) wait_list_answers(pending, rerouted);
  for (auto const& part : parts) state_.remote_keys += part.reads.size() + part.arriving.size();
  wait_find_owned(pending, rerouted);
  pending.routes.clear();
  pending.routed = true;
}

// Finds the rows that this rank owns before the step.
void BatchRouter::wait_find_owned(PendingBatch const& pending, ReroutedParts const& rerouted) {
  auto& stream = state_.stream;
  std::vector<Array<Key>> keys;
  std::vector<Array<std::uint32_t>> ids;
  std::vector<kernels::GatherElements<Key>> gathers;
  std::vector<kernels::ScatterElements> scatters;
  std::vector<TableShard::ShardKeys> local;
  for (std::size_t p = 0; p < pending.batch->parts.size(); ++p) {
    auto& part = pending.batch->parts[p];
    auto& shard = state_.table(part.table);
    auto const place = std::find(rerouted.parts.begin(), rerouted.parts.end(), p);
    if (place == rerouted.parts.end()) {
      local.push_back({&shard, part.keys_at(state_.me), part.ids_at(state_.me)});
      continue;
    }
    auto const owned =
        rerouted.lists(static_cast<std::size_t>(place - rerouted.parts.begin()), kernels::owned_list(ranks()), 1);
    auto const& own = keys.emplace_back(stream.device(), owned.size());
    auto const& rows = ids.emplace_back(stream.device(), owned.size());
    gathers.push_back({part.keys, owned.positions, own});
    scatters.push_back({.from = rows, .positions = owned.positions, .to = part.ids});
    local.push_back({&shard, own, rows});
  }
  kernels::gather_elements(stream, gathers);
  kernels::HostReads none(stream);
  TableShard::wait_resolve(stream, local, none);
  kernels::scatter_elements(stream, scatters);
}

}  // namespace gpups::cache
