// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/batch_router.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "cache/wire/route_coding.hpp"
#include "comm/base/serialization.hpp"
#include "kernels/base/check.hpp"
#include "kernels/index/indexed_keys.hpp"
#include "kernels/rows/gather_elements.hpp"
#include "kernels/runtime/upload.hpp"

namespace gpups::cache {

void BatchRouter::receive(Rank home, Message const& message, std::uint64_t tag, std::function<void()> then) {
  std::uint64_t bytes_expected = 0;
  for (auto const& route : message.routes) {
    auto const found = state_.batches.find(route.clock);
    if (found == state_.batches.end() || !found->second.sent || found->second.routed ||
        found->second.routes.contains(home) || found->second.batch->parts.size() != route.away.size()) {
      state_.throw_peer_error(home, "sent a route for a batch that was not announced to it");
    }
    bool const moves = std::any_of(route.moved.begin(), route.moved.end(), [](auto rows) { return rows > 0; });
    if (moves && found->second.is_late) state_.throw_peer_error(home, "sent a route with moves for a late fetch");
    for (std::size_t p = 0; p < route.away.size(); ++p) {
      std::size_t const rows = found->second.batch->parts[p].reads.size_of(home);
      bytes_expected +=
          route_bytes(rows, route.away[p], state_.ranks) + route_bytes(rows, route.moved[p], state_.ranks);
    }
  }
  if (message.route_bytes != bytes_expected) {
    state_.throw_peer_error(home, "sent routes of another size than their rows need");
  }
  auto const bytes = std::make_shared<Array<std::uint8_t>>();
  auto const allocate = [bytes, size = message.route_bytes] {
    *bytes = Array<std::uint8_t>(Device::host(), size);
    return bytes->data();
  };
  state_.messenger.receive_data(
      state_.on_host, home, tag, message.route_bytes, allocate,
      [this, home, routes = message.routes, bytes, then = std::move(then)] {
        wait_read(home, routes, {reinterpret_cast<char const*>(bytes->data()), bytes->size()});
        then();
      });
}

void BatchRouter::wait_read(Rank home, std::vector<Route> const& routes, std::string_view bytes) try {
  for (auto const& route : routes) {
    auto& pending = state_.batches.at(route.clock);
    auto& owners = pending.routes[home];
    for (std::size_t p = 0; p < route.away.size(); ++p) {
      std::vector<Rank> const of_home(pending.batch->parts[p].reads.size_of(home), home);
      auto& of_part = owners.emplace_back();
      of_part.before = decode_route(bytes, of_home, route.away[p], state_.ranks);
      of_part.in_step = decode_route(bytes, of_part.before, route.moved[p], state_.ranks);
    }
  }
  if (!bytes.empty()) throw comm::SerializationError("more bytes than its routes need");
} catch (comm::SerializationError const& error) {
  state_.throw_peer_error(home, fmt::format("sent routes with {}", error.what()));
}

// Returns true if the home of a row of this part is not its owner, before the step or in it.
bool BatchRouter::is_rerouted(PendingBatch const& pending, std::size_t part) const {
  return std::any_of(pending.routes.begin(), pending.routes.end(), [=](auto const& route) {
    auto const& [home, owners] = route;
    auto const is_other = [home_rank = home](Rank owner) { return owner != home_rank; };
    auto const& [before, in_step] = owners[part];
    return std::any_of(before.begin(), before.end(), is_other) || std::any_of(in_step.begin(), in_step.end(), is_other);
  });
}

// Returns all rows of a part, in the ascending order of their keys.
std::vector<BatchRouter::RoutedRow> BatchRouter::routed_rows(PendingBatch const& pending, std::size_t p,
                                                             IntentKeys const& intent) const {
  auto const& part = pending.batch->parts[p];
  std::vector<RoutedRow> rows;
  rows.reserve(part.rows);
  for (std::uint32_t h = 0; h < static_cast<std::uint32_t>(state_.ranks); ++h) {
    Rank const home{h};
    bool const own = home == state_.me;
    auto const route = pending.routes.find(home);
    std::size_t const count = own ? part.rows_at(home) : part.reads.size_of(home);
    GPUPS_ASSERT(route == pending.routes.end() ||
                 (route->second[p].before.size() == count && route->second[p].in_step.size() == count));
    for (std::uint32_t i = 0; i < count; ++i) {
      RoutedRow row{.position = own ? part.homes[h] + i : intent.positions[part.reads.first[h] + i],
                    .home = home,
                    .before = home,
                    .in_step = home};
      if (route != pending.routes.end()) {
        row.before = route->second[p].before[i];
        row.in_step = route->second[p].in_step[i];
      }
      rows.push_back(row);
    }
  }
  GPUPS_ASSERT(rows.size() == part.rows);
  std::vector<kernels::IndexedKey> order;
  order.reserve(rows.size());
  for (std::uint32_t i = 0; i < rows.size(); ++i) order.push_back({number(intent.keys[rows[i].position]), i});
  kernels::sort_by_value(order);
  std::vector<RoutedRow> sorted;
  sorted.reserve(rows.size());
  for (auto const& [key, i] : order) sorted.push_back(rows[i]);
  return sorted;
}

RankLists BatchRouter::upload(HostLists const& lists) {
  RankLists uploaded;
  std::vector<std::uint32_t> positions;
  uploaded.first.push_back(0);
  for (auto const& list : lists) {
    positions.insert(positions.end(), list.begin(), list.end());
    uploaded.first.push_back(static_cast<std::uint32_t>(positions.size()));
  }
  uploaded.positions = upload_list(positions);
  return uploaded;
}

// Replaces the lists by home by lists by owner. Returns the positions of the rows that this rank owns before the step.
// arrived: keys of the table that arrive with earlier parts. Queued on the stream.
Array<std::uint32_t> BatchRouter::make_lists(PendingBatch& pending, std::size_t p, IntentKeys const& intent,
                                             std::set<Key>& arrived) {
  auto const ranks = static_cast<std::size_t>(state_.ranks);
  Rank const me = state_.me;
  HostLists reads(ranks), updates(ranks), arriving(ranks);
  std::vector<std::uint32_t> local, placed, owned;
  std::map<std::pair<Rank, Rank>, std::vector<std::uint32_t>> late;  // by owner and home: places in the owner's list
  [[maybe_unused]] std::size_t kept = 0;                             // rows in `owned` and `placed`
  bool differ = false, any_arrives = false;
  auto const rows = routed_rows(pending, p, intent);
  for (auto const& row : rows) {
    bool const moves = row.before != row.in_step;
    bool const arrives = moves && row.in_step == me, leaves = moves && row.before == me;
    bool const arrives_here = arrives && arrived.insert(intent.keys[row.position]).second;
    if (arrives_here) arriving[number(row.before)].push_back(row.position);
    if (leaves || (arrives && !arrives_here)) placed.push_back(row.position);
    if (row.before == me) owned.push_back(row.position);
    if (leaves) ++kept;
    if (!arrives && row.before != me) {
      auto& list = reads[number(row.before)];
      if (pending.is_late) late[{row.before, row.home}].push_back(static_cast<std::uint32_t>(list.size()));
      list.push_back(row.position);
    }
    row.in_step == me ? local.push_back(row.position) : updates[number(row.in_step)].push_back(row.position);
    differ = differ || (moves && !arrives);
    any_arrives = any_arrives || arrives_here;
  }
  auto& part = pending.batch->parts[p];
  part.reads = upload(reads);
  if (differ) part.other_updates = upload(updates);
  if (any_arrives) part.arriving = upload(arriving);
  part.placed = upload_list(placed);
  part.local_positions = upload_list(local);
  if (pending.is_late) {
    auto& places_of = pending.late_places[p];
    for (auto& [from, places] : late) {
      for (auto& place : places) place += part.reads.first[number(from.first)];
      places_of[from] = upload_list(places);
    }
  }
  // Every row gets a number in one way, and its gradient goes to one rank.
  GPUPS_ASSERT(owned.size() + part.reads.size() + part.arriving.size() + placed.size() - kept == rows.size());
  GPUPS_ASSERT(local.size() + part.updates().size() == rows.size());
  return upload_list(owned);
}

Array<std::uint32_t> BatchRouter::upload_list(std::vector<std::uint32_t> const& positions) {
  Array<std::uint32_t> uploaded(state_.stream.device(), positions.size());
  kernels::upload<std::uint32_t>(state_.stream, uploaded, positions);
  return uploaded;
}

void BatchRouter::wait_route(PendingBatch& pending) {
  auto& stream = state_.stream;
  auto& parts = pending.batch->parts;
  GPUPS_ASSERT(!pending.routed && !pending.placed);  // the lists by home are replaced once
  for ([[maybe_unused]] auto const& [home, owners] : pending.routes) GPUPS_ASSERT(owners.size() == parts.size());
  state_.remote_home_keys += static_cast<std::uint64_t>(pending.unannounced);
  for (auto const& part : parts) state_.remote_home_keys += part.reads.size();  // still by home
  std::map<std::size_t, IntentKeys> rerouted;                                   // by part
  kernels::HostReads reads(stream);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (!is_rerouted(pending, p)) continue;
    auto& [positions, keys] = rerouted[p];
    reads.add<std::uint32_t>(parts[p].reads.positions.view(), positions);
    reads.add<Key>(parts[p].keys, keys);
  }
  reads.wait();
  std::map<std::size_t, Array<std::uint32_t>> owned;
  std::map<TableId, std::set<Key>> arrived;
  for (auto const& [p, intent] : rerouted) {
    owned[p] = make_lists(pending, p, intent, arrived[parts[p].table]);
  }
  for (auto const& part : parts) state_.remote_keys += part.reads.size() + part.arriving.size();
  wait_find_owned(pending, owned);
  pending.routes.clear();
  pending.routed = true;
}

// Finds the rows that this rank owns before the step. owned: their positions in the parts that are rerouted.
void BatchRouter::wait_find_owned(PendingBatch const& pending,
                                  std::map<std::size_t, Array<std::uint32_t>> const& owned) {
  auto& stream = state_.stream;
  std::vector<Array<Key>> keys;
  std::vector<Array<std::uint32_t>> ids;
  std::vector<kernels::GatherElements<Key>> gathers;
  std::vector<kernels::ScatterElements> scatters;
  std::vector<TableShard::ShardKeys> local;
  for (std::size_t p = 0; p < pending.batch->parts.size(); ++p) {
    auto& part = pending.batch->parts[p];
    auto& shard = state_.table(part.table);
    auto const positions = owned.find(p);
    if (positions == owned.end()) {
      local.push_back({&shard, part.keys_at(state_.me), part.ids_at(state_.me)});
      continue;
    }
    auto const& own = keys.emplace_back(stream.device(), positions->second.size());
    auto const& rows = ids.emplace_back(stream.device(), positions->second.size());
    gathers.push_back({part.keys, positions->second, own});
    scatters.push_back({.from = rows, .positions = positions->second, .to = part.ids});
    local.push_back({&shard, own, rows});
  }
  kernels::gather_elements(stream, gathers);
  kernels::HostReads none(stream);
  TableShard::wait_resolve(stream, local, none);
  kernels::scatter_elements(stream, scatters);
}

}  // namespace gpups::cache
