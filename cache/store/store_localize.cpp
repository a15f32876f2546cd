// SPDX-License-Identifier: Apache-2.0
// Store::localize(), Store::where() and Store::hottest_rows().
#include <fmt/core.h>

#include <algorithm>
#include <bit>

#include "cache/protocol/requests/collective_call.hpp"
#include "cache/protocol/requests/row_claims.hpp"
#include "cache/protocol/requests/row_request.hpp"
#include "cache/store/store_impl.hpp"
#include "kernels/runtime/memory_scope.hpp"

namespace gpups {

using Kind = cache::RowRequest::Kind;

// Takes two and a half round trips. All ranks send claims to all homes, with their errors; when a home has those of all
// ranks, it decides who gets each row, and sends grants. The claimants take the rows from their owners. Then a barrier
// keeps ranks from going on while others still take rows from them.
void Store::localize(Stream& stream, TableId table, View<Key const> keys) {
  impl_->require_between_steps("localize");
  auto& engine = impl_->engine();
  cache::Engine::CollectiveCall const call(engine, impl_->call_on(table, "localize"));
  wait_applied();
  Impl::ChangeOfRows change(*impl_);
  auto const each_rank = [this](auto const& make) {
    std::vector<std::string> all;
    for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(ranks()); ++q) all.push_back(make(Rank{q}));
    return all;
  };
  cache::KeysOfHomes claimed;
  auto const claims = cache::wait_collective_exchange(engine, [&] {
    change.forbid_batches();
    (void)impl_->shard(table);  // throws if there is none
    impl_->require_stream(stream, "localize");
    kernels::MemoryScope const scope(stream);
    claimed = cache::wait_group_by_home(stream, "localize", keys, ranks());
    return each_rank([&](Rank home) { return cache::encode_claim(claimed.of(home)); });
  });
  std::vector<std::vector<Key>> claims_of_ranks;
  for (std::uint32_t q = 0; q < claims.size(); ++q) {
    claims_of_ranks.push_back(cache::decode_claim(Rank{q}, claims[q], rank(), ranks()));
  }

  cache::DecidedClaims decided;
  auto const grants = cache::wait_collective_exchange(engine, [&] {
    engine.wait_invoke([&](Stream& own) {
      impl_->drop_replicas(own);
      impl_->free_unused_rows(own);
      decided = cache::wait_decide(own, engine.placement().at(table), claims_of_ranks, clock());
    });
    change.allow(Kind::kTake);  // from now on: a rank that has all grants may take rows
    return each_rank([&](Rank claimant) { return cache::encode_grant(decided.grants[number(claimant)]); });
  });
  // No rank had an error.
  engine.wait_invoke([&](Stream& own) {
    engine.placement().any_moved = true;
    engine.placement().at(table).wait_set(own, View<Key const>(decided.moved), decided.entries, clock());
  });
  std::vector<Rank> owners;
  for (std::uint32_t q = 0; q < grants.size(); ++q) {
    auto const from = cache::decode_grant(Rank{q}, grants[q], claimed.of(Rank{q}).size(), ranks());
    owners.insert(owners.end(), from.begin(), from.end());
  }

  cache::wait_collective_call(engine, cache::Timeout::kDefault, [&] {
    auto& shard = impl_->shard(table);
    std::shared_ptr<cache::RowRequest> take;
    engine.wait_invoke([&](Stream& own) {
      std::vector<std::uint32_t> positions;
      take = cache::make_owned_request(own, Kind::kTake, table, claimed.keys, owners, shard.dim(),
                                       shard.state_columns(), ranks(), positions);
    });
    if (take->size() > 0) impl_->wait_request(take);
    engine.wait_invoke([&](Stream& own) {
      if (take->size() == 0) return engine.executor().send_residuals_early(table, {});
      for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(ranks()); ++q) {
        Rank const from{q};
        shard.wait_put(own, take->keys_of(from), take->values_of(from), take->found_of(from), take->words_of(from));
      }
      engine.executor().send_residuals_early(table, to_host(own, take->all_keys()));
    });
    return std::string();
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
