// SPDX-License-Identifier: Apache-2.0
// Store::localize(), Store::where() and Store::hottest_rows().
#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "cache/protocol/requests/collective_call.hpp"
#include "cache/protocol/requests/row_request.hpp"
#include "cache/store/store_impl.hpp"
#include "kernels/runtime/memory_scope.hpp"

namespace gpups {

using Kind = cache::RowRequest::Kind;

// All ranks claim rows from the homes. When all have claimed, homes decide who gets each row, and the claimants take
// the rows from their owners.
void Store::localize(Stream& stream, TableId table, View<Key const> keys) {
  impl_->require_between_steps("localize");
  auto& engine = impl_->engine();
  cache::Engine::CollectiveCall const call(engine, impl_->call_on(table, "localize"));
  wait_applied();
  std::shared_ptr<cache::RowRequest> claim;
  auto const check = [&] {
    auto const& shard = impl_->shard(table);
    impl_->require_stream(stream, "localize");
    kernels::MemoryScope const scope(stream);
    Array<std::uint32_t> positions;
    claim = cache::make_request(stream, Kind::kClaim, table, keys, shard.dim(), 0, ranks(), positions);
  };
  impl_->wait_change_rows(Kind::kClaim, check, [&] {
    impl_->wait_request(claim);
    wait_barrier();
    engine.wait_invoke([&](Stream&) { engine.placement().any_moved = true; });
    auto& shard = impl_->shard(table);
    std::shared_ptr<cache::RowRequest> grant, take;
    engine.wait_invoke([&](Stream& own) {
      Array<std::uint32_t> positions;
      grant = cache::make_request(own, Kind::kGrant, table, claim->all_keys(), shard.dim(), 0, ranks(), positions);
    });
    impl_->wait_request(grant);
    engine.wait_invoke([&](Stream& own) {
      auto const granted = to_host(own, grant->all_keys());
      std::vector<Rank> from;
      for (auto const rank : to_host(own, grant->words.view())) from.push_back(Rank{rank});
      std::vector<std::uint32_t> positions;
      take = cache::make_owned_request(own, Kind::kTake, table, granted, from, shard.dim(), shard.state_columns(),
                                       ranks(), positions);
    });
    impl_->wait_request(take);
    engine.wait_invoke([&](Stream& own) {
      for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(ranks()); ++q) {
        Rank const from{q};
        shard.wait_put(own, take->keys_of(from), take->values_of(from), take->found_of(from), take->words_of(from));
      }
    });
    engine.wait_invoke(
        [&](Stream& own) { engine.executor().send_residuals_early(table, to_host(own, take->all_keys())); });
    return 0;
  });
}

RowPlacement Store::where(TableId table, Key key) {
  impl_->require_between_steps("where");
  auto& engine = impl_->engine();
  auto const& shard = impl_->shard(table);
  wait_applied();
  std::shared_ptr<cache::RowRequest> request;
  RowPlacement row;
  engine.wait_invoke([&](Stream& own) {
    Array<std::uint32_t> positions;
    request = cache::make_request(own, Kind::kWhere, table, to_device(own, std::vector{key}), shard.dim(), 0, ranks(),
                                  positions);
  });
  impl_->wait_request(request);
  engine.wait_invoke([&](Stream& own) {
    auto const words = to_host(own, request->words.view());
    row.owner = Rank{words[0]};
    row.reason = static_cast<PlacementReason>(words[1]);
    row.since = Clock{static_cast<std::int64_t>(words[2] | std::uint64_t{words[3]} << 32)};
  });
  for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(ranks()); ++q) {
    if (request->size_of(Rank{q}) > 0) row.home = Rank{q};
  }
  return row;
}

std::vector<HotRow> Store::hottest_rows(std::size_t count) {
  impl_->require_between_steps("hottest_rows");
  auto& engine = impl_->engine();
  wait_applied();
  Clock const now = clock();
  std::vector<HotRow> rows;
  engine.wait_invoke([&](Stream& own) {
    for (auto const& [table, key, uses, users] : engine.executor().wait_hottest_rows(std::min(count, kHotRowsMax))) {
      View<Key const> const keys(&key, 1, Device::host());
      auto const entry = engine.placement().at(table).wait_entries(own, keys, now)[0];
      HotRow row{.table = table,
                 .key = key,
                 .placement = {.owner = entry.owner, .home = rank(), .since = entry.since, .reason = entry.reason},
                 .uses = std::vector<std::uint32_t>(static_cast<std::size_t>(ranks()))};
      for (auto const& user : users)
        row.uses[number(user.rank)] = static_cast<std::uint32_t>(std::popcount(user.steps));
      rows.push_back(std::move(row));
    }
  });
  return rows;
}

}  // namespace gpups
