// SPDX-License-Identifier: Apache-2.0
// TableShard: finds and reserves rows of many tables together, and finds repeated keys.
#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <vector>

#include "cache/rows/table_shard.hpp"
#include "gpups/error.hpp"
#include "kernels/rows/check_rows.hpp"
#include "kernels/rows/init_rows.hpp"

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

void TableShard::wait_resolve(Stream& stream, std::span<ShardKeys const> parts) {
  SoughtRows rows{.parts = {parts.begin(), parts.end()}};
  kernels::HostReads reads(stream);
  find_missing(stream, rows, reads);
  reads.wait();
  wait_add_missing(stream, rows);
}

void TableShard::find_missing(Stream& stream, SoughtRows& rows, kernels::HostReads& reads) {
  rows.missing_there = Array<std::uint32_t>(stream.device(), rows.parts.size());
  kernels::KeyIndex::find_missing(stream, searches_of(rows.parts), rows.missing_there);
  reads.add<std::uint32_t>(rows.missing_there.view(), rows.missing);
}

void TableShard::wait_resolve_lists(Stream& stream, std::span<ShardLists const> parts, View<std::uint32_t> repeated,
                                    kernels::HostReads& also) {
  SoughtRows rows{.parts = {parts.begin(), parts.end()}};
  find_missing(stream, rows, also);
  also.wait();
  wait_add_missing(stream, rows);
  queue_repeated(stream, parts, repeated);
}

void TableShard::wait_add_missing(Stream& stream, SoughtRows const& rows) {
  std::vector<MissingKeys> now;
  std::vector<ShardKeys> later;  // lists whose missing keys another list of their table may add now
  std::set<TableShard const*> changed;
  for (std::size_t p = 0; p < rows.parts.size(); ++p) {
    auto const& part = rows.parts[p];
    if (rows.missing[p] == 0) {
      part.shard->index_.wait_continue_growth(stream);
    } else if (changed.insert(part.shard).second) {
      now.push_back({part, rows.missing[p]});
    } else {
      later.push_back(part);
    }
  }
  wait_reserve(stream, now);
  for (auto const& part : later) part.shard->wait_resolve(stream, part.keys, part.ids);
}

// Sets repeated[k] to a row that list k has twice, or to kNoRow.
void TableShard::queue_repeated(Stream& stream, std::span<ShardLists const> parts, View<std::uint32_t> repeated) {
  memory::fill_bytes(stream, repeated.data(), 0xFF, repeated.bytes());  // kNoRow
  std::vector<kernels::RepeatedIds> lists;
  for (auto const& part : parts) {
    auto& shard = *part.shard;
    std::size_t first = 0;
    for (std::size_t const end : part.ends) {
      auto const epoch = shard.next_epoch(stream);
      lists.push_back({.ids = part.ids.slice(first, end - first),
                       .mark = shard.mark_.ref(),
                       .epoch = epoch,
                       .repeated = repeated.slice(lists.size(), 1)});
      first = end;
    }
  }
  kernels::repeated_ids(stream, lists);
}

std::optional<TableShard::RepeatedKey> TableShard::wait_repeated_key(Stream& stream, std::span<ShardLists const> parts,
                                                                     std::vector<std::uint32_t> const& repeated) {
  auto row = repeated.begin();
  for (std::size_t p = 0; p < parts.size(); ++p) {
    for (std::size_t k = 0; k < parts[p].ends.size(); ++k, ++row) {
      if (*row == kernels::kNoRow) continue;
      auto const id = to_device(stream, std::vector{*row});
      return RepeatedKey{p, k, to_host(stream, parts[p].shard->wait_keys_of(stream, id).view())[0]};
    }
  }
  return std::nullopt;
}

std::vector<Array<std::uint32_t>> TableShard::wait_insert(Stream& stream, std::span<MissingKeys const> tables) {
  std::vector<kernels::KeyIndex::Insertion> insertions;
  for (auto const& [of, count] : tables)
    insertions.push_back({&of.shard->index_, of.keys, of.ids, count, of.shard->options_.name, of.distinct});
  auto added = kernels::KeyIndex::wait_insert(stream, insertions);
  for (std::size_t t = 0; t < tables.size(); ++t) {
    if (!added[t].empty()) tables[t].of.shard->wait_make_room(stream);
  }
  return added;
}

void TableShard::wait_reserve(Stream& stream, std::span<MissingKeys const> tables) {
  auto const added = wait_insert(stream, tables);
  std::vector<kernels::InitRows> rows;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    if (!added[t].empty()) rows.push_back(tables[t].of.shard->init_new_rows(added[t]));
  }
  if (rows.empty()) return;
  kernels::init_rows(stream, rows);
}

kernels::InitRows TableShard::init_new_rows(View<std::uint32_t const> ids) {
  auto rows = init_values(ids);
  rows.state = state_.ref();
  rows.state_columns = state_columns_;
  rows.accumulators = kernels::accumulator_columns(options_.optimizer, dim());
  rows.initial_accumulator = options_.optimizer.initial_accumulator;
  return rows;
}

// Names the table in errors.
void TableShard::wait_make_room(Stream& stream) try {
  std::size_t const rows = index_.ids_end();
  values_.reserve(stream, rows);
  state_.reserve(stream, rows);
  lifecycle_.reserve(stream, rows);
} catch (Error const& error) {
  throw Error(fmt::format("new rows of table '{}' cannot be added: {}", options_.name, error.what()));
}

}  // namespace gpups::cache
