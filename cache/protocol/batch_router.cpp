// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/batch_router.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "cache/wire/key_coding.hpp"
#include "cache/wire/route_coding.hpp"
#include "comm/wire.hpp"
#include "kernels/gather_elements.hpp"
#include "kernels/upload.hpp"

namespace gpups::cache {

void BatchRouter::receive(Rank home, Message const& message, std::uint64_t tag, std::function<void()> then) {
  std::uint64_t bytes_expected = 0;
  for (auto const& route : message.routes) {
    auto const found = state_.batches.find(route.clock);
    if (found == state_.batches.end() || !found->second.sent || found->second.routed ||
        found->second.routes.contains(home) || found->second.batch->parts.size() != route.away.size()) {
      state_.throw_peer_error(home, "sent a route for a batch that was not announced to it");
    }
    for (std::size_t p = 0; p < route.away.size(); ++p) {
      bytes_expected += route_bytes(found->second.batch->parts[p].list_size(home), route.away[p]);
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
      owners.push_back(decode_route(bytes, pending.batch->parts[p].list_size(home), route.away[p], home, state_.ranks));
    }
  }
  if (!bytes.empty()) throw comm::WireError("more bytes than its routes need");
} catch (comm::WireError const& error) {
  state_.throw_peer_error(home, fmt::format("sent routes with {}", error.what()));
}

// Returns true if a row of this part is away from its home.
bool BatchRouter::is_rerouted(PendingBatch const& pending, std::size_t part) const {
  return std::any_of(pending.routes.begin(), pending.routes.end(), [=](auto const& route) {
    auto const& [home, owners] = route;
    return std::any_of(owners[part].begin(), owners[part].end(), [=](Rank owner) { return owner != home; });
  });
}

// Replaces the lists by home by lists by owner. Each list has the rows of home 0 first, then those of home 1 ...
// Queued on the stream.
void BatchRouter::make_lists(PendingBatch const& pending, std::size_t p, RoutedKeys const& routed) {
  auto& part = pending.batch->parts[p];
  auto& stream = state_.stream;
  auto const ranks = static_cast<std::uint32_t>(state_.ranks);
  std::vector<std::vector<std::uint32_t>> lists(ranks);
  part.list_rows.assign(std::size_t{ranks} * ranks, 0);
  for (std::uint32_t h = 0; h < ranks; ++h) {
    Rank const home{h};
    bool const own = home == state_.me;
    auto const route = pending.routes.find(home);
    std::size_t const rows = own ? part.rows_at(home) : part.list_size(home);
    std::vector<std::vector<std::uint32_t>> away(ranks);
    for (std::uint32_t i = 0; i < rows; ++i) {
      std::uint32_t const position = own ? part.homes[h] + i : routed.by_home[part.lists[h] + i];
      Rank const owner = route == pending.routes.end() ? home : route->second[p][i];
      (owner == home ? lists[h] : away[number(owner)]).push_back(position);
      ++part.list_rows[number(owner) * ranks + h];
    }
    for (std::uint32_t q = 0; q < ranks; ++q) {
      std::sort(away[q].begin(), away[q].end(), [&](auto a, auto b) { return routed.keys[a] < routed.keys[b]; });
      lists[q].insert(lists[q].end(), away[q].begin(), away[q].end());
    }
  }
  std::vector<std::uint32_t> positions;
  for (std::uint32_t q = 0; q < ranks; ++q) {
    part.lists[q] = static_cast<std::uint32_t>(positions.size());
    if (Rank{q} != state_.me) positions.insert(positions.end(), lists[q].begin(), lists[q].end());
  }
  part.lists[ranks] = static_cast<std::uint32_t>(positions.size());
  auto const& local = lists[number(state_.me)];
  part.remote_positions = Array<std::uint32_t>(stream.device(), positions.size());
  part.local_positions = Array<std::uint32_t>(stream.device(), local.size());
  kernels::upload<std::uint32_t>(stream, part.remote_positions, positions);
  kernels::upload<std::uint32_t>(stream, *part.local_positions, local);
}

void BatchRouter::wait_route(PendingBatch& pending, kernels::HostReads& also) {
  auto& stream = state_.stream;
  auto& parts = pending.batch->parts;
  std::map<std::size_t, RoutedKeys> routed;  // by part: those with rows that are away from home
  kernels::HostReads reads(stream);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (!is_rerouted(pending, p)) continue;
    auto& [by_home, keys] = routed[p];
    reads.add<std::uint32_t>(parts[p].remote_positions.view(), by_home);
    reads.add<Key>(parts[p].keys, keys);
  }
  reads.wait();
  for (auto const& [p, keys] : routed) make_lists(pending, p, keys);

  std::vector<Array<Key>> local_keys;
  std::vector<Array<std::uint32_t>> local_ids;
  std::vector<kernels::GatherElements<Key>> gathers;
  std::vector<kernels::ScatterElements> scatters;
  std::vector<TableShard::ShardKeys> local;
  for (auto& part : parts) {
    auto& shard = state_.table(part.table);
    state_.remote_keys += part.remote_positions.size();
    if (!part.local_positions) {
      local.push_back({&shard, part.keys_at(state_.me), part.ids_at(state_.me)});
      continue;
    }
    auto const& positions = *part.local_positions;
    auto const& own = local_keys.emplace_back(stream.device(), positions.size());
    auto const& rows = local_ids.emplace_back(stream.device(), positions.size());
    gathers.push_back({part.keys, positions, own});
    scatters.push_back({.from = rows, .positions = positions, .to = part.ids});
    local.push_back({&shard, own, rows});
  }
  kernels::gather_elements(stream, gathers);
  TableShard::wait_resolve(stream, local, also);
  kernels::scatter_elements(stream, scatters);
  pending.routes.clear();
  pending.routed = true;
}

}  // namespace gpups::cache
