// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/reader/batch_router.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/index/sort_keys.hpp"
#include "kernels/placement/partition.hpp"

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

void BatchRouter::receive(Rank home, Clock clock, Routes const& routes, std::uint64_t tag, std::function<void()> then) {
  // Gradients come with the route of the next step's batch, and the answer to a late fetch with that of its batch. So a
  // batch is not routed before the columns of its routes have arrived.
  bool const is_late = section_of(tag) == Section::kLateRoutes;
  std::uint64_t bytes_expected = 0;
  for (auto const& route : routes.batches) {
    auto const found = state_.batches.find(route.clock);
    if (found == state_.batches.end() || route.clock != clock || found->second.is_late != is_late ||
        !found->second.sent || found->second.routed || found->second.routes.contains(home) ||
        found->second.batch->parts.size() != route.parts.size()) {
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
  if (routes.bytes != bytes_expected) {
    state_.throw_peer_error(home, "sent routes of another size than their rows need");
  }
  auto const bytes = std::make_shared<Array<std::uint8_t>>();
  auto const allocate = [bytes, device = state_.stream.device(), size = routes.bytes] {
    *bytes = Array<std::uint8_t>(device, size);
    return bytes->data();
  };
  state_.messenger.receive_data(state_.stream, home, tag, routes.bytes, allocate,
                                [this, home, routes = routes.batches, bytes, then = std::move(then)] {
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

// Reads the routes of the rerouted parts into columns of rows.
void BatchRouter::read_routes(PendingBatch const& pending, ReroutedParts& rerouted) {
  auto const& parts = pending.batch->parts;
  std::vector<kernels::RoutedRows> routes;
  std::uint32_t rows = 0;
  for (std::size_t const p : rerouted.parts) {
    for (std::uint32_t h = 0; h < ranks(); ++h) {
      Rank const home{h};
      auto const positions = home == state_.me ? parts[p].own_order.positions : parts[p].reads.of(home);
      auto const route = pending.routes.find(home);
      RouteColumns columns;
      if (route != pending.routes.end()) columns = route->second.parts[p];
      routes.push_back({positions, parts[p].keys, columns.before, columns.in_step, h});
      rerouted.homes.push_back(home);
    }
    auto const size = static_cast<std::uint32_t>(parts[p].rows);
    rerouted.rows.push_back({rows, size});
    rows += size;
  }
  auto const words = [&](std::size_t size) { return Array<std::uint32_t>(state_.stream.device(), size); };
  rerouted.keys = Array<Key>(state_.stream.device(), rows);
  rerouted.rows_at = words(rows);
  rerouted.owners = words(rows);
  rerouted.wrong_there = words(routes.size());
  kernels::read_routes(state_.stream, {.homes = routes,
                                       .ranks = ranks(),
                                       .rank_bytes = rank_bytes(state_.ranks),
                                       .positions = rerouted.rows_at,
                                       .owners = rerouted.owners,
                                       .keys = rerouted.keys,
                                       .wrong = rerouted.wrong_there});
}

// Makes the lists of all parts with rows that are away from their homes.
void BatchRouter::begin(PendingBatch const& pending, kernels::HostReads& reads) {
  auto& stream = state_.stream;
  auto const& parts = pending.batch->parts;
  GPUPS_ASSERT(!pending.routed && !pending.placed && begun_.parts.empty());  // the lists by home are replaced once
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (is_rerouted(pending, p)) begun_.parts.push_back(p);
  }
  if (begun_.parts.empty()) return;
  std::stable_sort(begun_.parts.begin(), begun_.parts.end(),
                   [&](std::size_t a, std::size_t b) { return parts[a].table < parts[b].table; });
  read_routes(pending, begun_);
  std::vector<kernels::ListRows::RowRange> tables;
  for (std::size_t i = 0; i < begun_.parts.size(); ++i) {
    bool const same_table = i > 0 && parts[begun_.parts[i - 1]].table == parts[begun_.parts[i]].table;
    same_table ? void(tables.back().size += begun_.rows[i].size) : tables.push_back(begun_.rows[i]);
  }
  std::size_t const rows = begun_.keys.size();
  auto const words = [&](std::size_t size) { return Array<std::uint32_t>(stream.device(), size); };
  Array<Key> const sorted(stream.device(), rows);
  auto const list_of = words(2 * rows);
  begun_.order = words(rows);
  begun_.items = words(2 * rows);
  begun_.differ_there = words(begun_.parts.size());
  std::vector<kernels::SortedKeys> sorts;
  for (auto const& [first, size] : tables) {
    sorts.push_back({begun_.keys.view().slice(first, size), sorted.view().slice(first, size),
                     begun_.order.view().slice(first, size), first});
  }
  kernels::sort_keys(stream, sorts);
  kernels::list_rows(stream, {.tables = tables,
                              .parts = begun_.rows,
                              .sorted = sorted,
                              .order = begun_.order,
                              .owners = begun_.owners,
                              .ranks = ranks(),
                              .me = number(state_.me),
                              .list_of = list_of,
                              .differ = begun_.differ_there});
  auto const lists = static_cast<std::uint32_t>(begun_.parts.size()) * lists_of_part();
  begun_.first_there = words(lists + 1);
  kernels::partition_items(stream, {list_of, lists, begun_.items, begun_.first_there});
  reads.add<std::uint32_t>(begun_.first_there.view(), begun_.first);
  reads.add<std::uint32_t>(begun_.differ_there.view(), begun_.differ);
  reads.add<std::uint32_t>(begun_.wrong_there.view(), begun_.wrong);
}

// Replaces the lists by home by lists by owner.
void BatchRouter::set_lists(PendingBatch& pending, ReroutedParts const& rerouted) {
  for (std::size_t i = 0; i < rerouted.parts.size(); ++i) {
    auto& part = pending.batch->parts[rerouted.parts[i]];
    part.reads = rank_lists(rerouted, i, kernels::reads_list(0));
    if (rerouted.differ[i] != 0) part.other_updates = rank_lists(rerouted, i, kernels::updates_list(ranks(), 0));
    auto arriving = rank_lists(rerouted, i, kernels::arriving_list(ranks(), 0));
    if (arriving.size() > 0) part.arriving = std::move(arriving);
    part.placed = rerouted.lists(i, kernels::placed_lists(ranks()), 2);
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
  kernels::HostReads reads(state_.stream);
  begin(pending, reads);
  reads.wait();
  wait_set_lists(pending, reads);
  reads.wait();
  wait_add_owned(pending);
}

void BatchRouter::wait_set_lists(PendingBatch& pending, kernels::HostReads& reads) {
  auto rerouted = std::exchange(begun_, {});
  for (std::size_t i = 0; i < rerouted.homes.size(); ++i) {
    if (rerouted.wrong[i] == 0) continue;
    state_.throw_peer_error(rerouted.homes[i], "sent a route to a rank that does not exist");
  }
  auto& parts = pending.batch->parts;
  state_.remote_home_keys += static_cast<std::uint64_t>(pending.unannounced);
  for (auto const& part : parts) state_.remote_home_keys += part.reads.size();  // still by home
  if (!rerouted.parts.empty()) {
    auto const taken = std::make_shared<Array<std::uint32_t>>(state_.stream.device(), rerouted.first.back());
    std::vector<kernels::TakePositions::Unordered> local;  // of sums that only this rank reads
    for (std::size_t i = 0; i < rerouted.parts.size(); ++i) {
      auto const* const first = &rerouted.first[i * lists_of_part() + kernels::local_list(ranks())];
      local.push_back({first[0], first[1] - first[0], rerouted.rows[i].size});
    }
    kernels::take_positions(state_.stream, {rerouted.items, rerouted.order, rerouted.rows_at, *taken, local});
    rerouted.positions = taken;
    set_lists(pending, rerouted);
    if (pending.is_late) wait_list_answers(pending, rerouted);
  }
  for (auto const& part : parts) state_.remote_keys += part.reads.size() + part.arriving.size();
  find_owned(pending, rerouted, reads);
}

void BatchRouter::wait_add_owned(PendingBatch& pending) {
  TableShard::wait_add_missing(state_.stream, owned_.sought);
  kernels::scatter_elements(state_.stream, owned_.scatters);
  owned_ = {};
  pending.routes.clear();
  pending.routed = true;
}

// Finds the rows that this rank owns before the step.
void BatchRouter::find_owned(PendingBatch const& pending, ReroutedParts const& rerouted, kernels::HostReads& reads) {
  auto& stream = state_.stream;
  auto& [sought, keys, ids, scatters] = owned_;
  GPUPS_ASSERT(sought.parts.empty());
  std::vector<kernels::GatherElements<Key>> gathers;
  std::map<TableId, std::size_t> parts_of_table;
  for (auto const& part : pending.batch->parts) ++parts_of_table[part.table];
  for (std::size_t p = 0; p < pending.batch->parts.size(); ++p) {
    auto& part = pending.batch->parts[p];
    auto& shard = state_.table(part.table);
    bool const distinct = parts_of_table[part.table] == 1;
    auto const place = std::find(rerouted.parts.begin(), rerouted.parts.end(), p);
    if (place == rerouted.parts.end()) {
      sought.parts.push_back({&shard, part.keys_at(state_.me), part.ids_at(state_.me), distinct});
      continue;
    }
    auto const owned =
        rerouted.lists(static_cast<std::size_t>(place - rerouted.parts.begin()), kernels::owned_lists(ranks()), 2);
    auto const& own = keys.emplace_back(stream.device(), owned.size());
    auto const& rows = ids.emplace_back(stream.device(), owned.size());
    gathers.push_back({part.keys, owned.positions, own});
    scatters.push_back({.from = rows, .positions = owned.positions, .to = part.ids});
    sought.parts.push_back({&shard, own, rows, distinct});
  }
  kernels::gather_elements(stream, gathers);
  TableShard::find_missing(stream, sought, reads);
}

}  // namespace gpups::cache
