// SPDX-License-Identifier: Apache-2.0
// TableShard: finds and reserves rows of many tables together, and finds repeated keys.
#include <fmt/core.h>

#include <set>
#include <vector>

#include "cache/rows/table_shard.hpp"
#include "gpups/error.hpp"
#include "kernels/columns.hpp"
#include "kernels/init_rows.hpp"
#include "kernels/parallel_for.hpp"
#include "kernels/repeated_ids.hpp"

namespace gpups::cache {

std::vector<kernels::KeyIndex::Search> TableShard::searches_of(std::span<ShardKeys const> parts) {
  std::vector<kernels::KeyIndex::Search> searches;
  for (auto const& part : parts) searches.push_back({&part.shard->index_, part.keys, part.ids});
  return searches;
}

void TableShard::wait_resolve(Stream& stream, View<Key const> keys, View<std::uint32_t> ids) {
  ShardKeys const part{this, keys, ids};
  wait_resolve(stream, {&part, 1});
}

void TableShard::wait_resolve(Stream& stream, std::span<ShardKeys const> parts, kernels::HostReads& also) {
  Array<std::uint32_t> const counts(stream.device(), parts.size());
  std::vector<std::uint32_t> missing;
  kernels::KeyIndex::find_missing(stream, searches_of(parts), counts);
  also.add<std::uint32_t>(counts.view(), missing);
  also.wait();
  wait_add_missing(stream, parts, missing);
}

std::optional<TableShard::RepeatedKey> TableShard::wait_resolve_distinct(Stream& stream,
                                                                         std::span<ShardKeys const> parts,
                                                                         kernels::HostReads& also) {
  Array<std::uint32_t> const counts(stream.device(), parts.size()), repeated(stream.device(), parts.size());
  std::vector<std::uint32_t> missing, found;
  kernels::KeyIndex::find_missing(stream, searches_of(parts), counts);
  queue_repeated(stream, parts, repeated);
  also.add<std::uint32_t>(counts.view(), missing);
  also.add<std::uint32_t>(repeated.view(), found);
  also.wait();
  if (auto const key = wait_key_of(stream, parts, found)) return key;
  wait_add_missing(stream, parts, missing);
  std::vector<ShardKeys> changed;
  std::vector<std::size_t> number;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (missing[p] == 0) continue;
    changed.push_back(parts[p]);
    number.push_back(p);
  }
  auto again = wait_find_repeated(stream, changed);
  if (again) again->part = number[again->part];
  return again;
}

void TableShard::wait_add_missing(Stream& stream, std::span<ShardKeys const> parts,
                                  std::vector<std::uint32_t> const& missing) {
  std::vector<MissingKeys> now;
  std::vector<ShardKeys> later;  // lists whose missing keys another list of their table may add now
  std::set<TableShard const*> changed;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    auto const& part = parts[p];
    if (missing[p] == 0) {
      part.shard->index_.wait_continue_growth(stream);
    } else if (changed.insert(part.shard).second) {
      now.push_back({part, missing[p]});
    } else {
      later.push_back(part);
    }
  }
  wait_reserve(stream, now);
  for (auto const& part : later) part.shard->wait_resolve(stream, part.keys, part.ids);
}

// Sets repeated[p] to a row that part p has twice, or to kNoRow.
void TableShard::queue_repeated(Stream& stream, std::span<ShardKeys const> parts, View<std::uint32_t> repeated) {
  memory::fill_bytes(stream, repeated.data(), 0xFF, repeated.bytes());  // kNoRow
  std::vector<kernels::RepeatedIds> lists;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    auto& shard = *parts[p].shard;
    auto const epoch = shard.next_epoch(stream);
    lists.push_back({.ids = parts[p].ids, .mark = shard.mark_.ref(), .epoch = epoch, .repeated = repeated.slice(p, 1)});
  }
  kernels::repeated_ids(stream, lists);
}

// Returns the key of the first row that is not kNoRow. rows: one for each part.
std::optional<TableShard::RepeatedKey> TableShard::wait_key_of(Stream& stream, std::span<ShardKeys const> parts,
                                                               std::vector<std::uint32_t> const& rows) {
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (rows[p] == kernels::kNoRow) continue;
    auto const id = to_device(stream, std::vector{rows[p]});
    return RepeatedKey{p, to_host(stream, parts[p].shard->wait_keys_of(stream, id).view())[0]};
  }
  return std::nullopt;
}

std::optional<TableShard::RepeatedKey> TableShard::wait_find_repeated(Stream& stream,
                                                                      std::span<ShardKeys const> parts) {
  if (parts.empty()) return std::nullopt;
  Array<std::uint32_t> const repeated(stream.device(), parts.size());
  queue_repeated(stream, parts, repeated);
  return wait_key_of(stream, parts, to_host(stream, repeated.view()));
}

// On the host, all threads work together on a table with many missing keys: 8192, or more than one thread's share of
// all missing keys. The other tables are distributed over the threads.
void TableShard::wait_reserve(Stream& stream, std::span<MissingKeys const> tables) {
  constexpr std::size_t kLarge = 8192;
  std::size_t total = 0;
  for (auto const& table : tables) total += table.count;
  std::vector<MissingKeys const*> small;
  for (auto const& table : tables) {
    if (table.count >= kLarge || table.count * static_cast<std::size_t>(stream.threads()) > total) {
      table.of.shard->wait_reserve(stream, table);
    } else {
      small.push_back(&table);
    }
  }
  kernels::parallel_for(stream, small.size(),
                        [&](Stream& part, std::size_t i) { small[i]->of.shard->wait_reserve(part, *small[i]); });
}

void TableShard::wait_reserve(Stream& stream, MissingKeys const& missing) try {
  auto const& [shard, keys, ids] = missing.of;
  auto const new_ids = index_.wait_insert(stream, keys, ids, missing.count);
  if (new_ids.empty()) return;
  wait_make_room(stream);
  auto const new_keys = keys_of(stream, new_ids);
  kernels::init_rows(stream, {.ids = new_ids,
                              .keys = new_keys,
                              .values = values_.ref(),
                              .state = state_.ref(),
                              .dim = dim(),
                              .state_columns = state_columns_,
                              .initializer = options_.initializer,
                              .accumulators = kernels::accumulator_columns(options_.optimizer, dim()),
                              .initial_accumulator = options_.optimizer.initial_accumulator,
                              .seed = seed_});
  stream.wait();  // new_ids and new_keys end here
} catch (Error const& error) {
  throw Error(fmt::format("new rows of table '{}' cannot be added: {}", options_.name, error.what()));
}

}  // namespace gpups::cache
