// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/owner/row_finder.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/index/sort_keys.hpp"

namespace gpups::cache {

// Adds a list, which is made in `part`.
void RowFinder::add(Rank reader, std::vector<View<Key const>> pieces, ListPart& part) {
  auto& list = added_.emplace_back(JoinedKeys{.reader = reader, .part = &part, .pieces = std::move(pieces)});
  for (auto const& keys : list.pieces) list.keys += keys.size();
}

// Adds the lists of all parts.
void RowFinder::add(Rank reader, ReaderBatch const& batch, std::span<RowRole const> roles,
                    std::vector<ListPart>& parts) {
  parts.resize(parts_of(batch));
  for (std::size_t p = 0; p < parts.size(); ++p) {
    parts[p].table = batch.homes.begin()->second.tables[p];
    add(reader, keys_of(batch, roles, p), parts[p]);
  }
}

// The rows of updates are those that were found for reads, if no row of the batch moves.
void RowFinder::add_updates(Rank reader, ReaderBatch& batch) {
  join_updates(batch);
  bool is_found = !batch.is_late;
  for (auto const role : {RowRole::kRead, RowRole::kUpdate}) is_found = is_found && !has_rows(batch, {&role, 1});
  for (std::size_t p = 0; p < batch.updates.size(); ++p) {
    ListPart& part = batch.updates[p];
    if (!is_found) {
      add(reader, keys_of(batch, kUpdateRoles, p), part);
      continue;
    }
    // The step before has found them, and the lists have not changed since.
    GPUPS_ASSERT(batch.reads.size() == batch.updates.size());
    GPUPS_ASSERT(batch.reads[p].table == part.table && batch.reads[p].ids.size() == batch.updates[p].count);
    part = batch.reads[p];
  }
}

// Adds the keys that homes have forwarded for a step, for check_found().
void RowFinder::add_forwarded(Clock clock) {
  forwarded_.clear();
  for (auto const& [id, batch] : state_.reader_batches) {
    for (auto const& [home, list] : batch.homes) {
      if (id.second != clock || home == state_.me) continue;
      for (auto const& role : list.keys) {
        for (auto const& part : role) {
          if (!part.keys.empty()) forwarded_.push_back({part.keys, number(home), number(part.table)});
        }
      }
    }
  }
  foreign_there_ = Array<std::uint32_t>(state_.stream.device(), forwarded_.size());
  kernels::find_foreign(state_.stream, forwarded_, static_cast<std::uint32_t>(state_.ranks), foreign_there_);
}

void RowFinder::wait_find(Clock step, kernels::HostReads& also) {
  GPUPS_ASSERT(step == state_.round.applied() && added_.empty());
  for (auto& [id, batch] : state_.reader_batches) {
    auto const& [reader, clock] = id;
    if (clock == step) {
      add_updates(reader, batch);
    } else if (clock == step + 1 && !batch.is_late) {
      add(reader, batch, kReadRoles, batch.reads);
      if (has_rows(batch, kMoveRoles)) add(reader, batch, kMoveRoles, batch.moves);
    }
  }
  add_forwarded(step + 1);
  wait_find_added(also);
}

// Sorts the lists that have keys of several homes; keys of one home are ascending already. Queued on the stream.
void RowFinder::merge_pieces(std::map<TableId, std::vector<JoinedKeys const*>> const& by_table) {
  std::vector<View<Key const>> unsorted;
  std::vector<View<Key>> places;
  std::size_t begin = 0, count = 0;
  for (auto const& [table, lists] : by_table) {
    for (auto const* const list : lists) {
      auto const place = keys_->view().slice(std::exchange(begin, begin + list->keys), list->keys);
      auto const homes =
          std::count_if(list->pieces.begin(), list->pieces.end(), [](auto keys) { return !keys.empty(); });
      if (homes < 2) continue;
      unsorted.push_back(place);
      places.push_back(place);
      count += list->keys;
    }
  }
  if (places.empty()) return;
  Array<Key> const copied(state_.stream.device(), count);
  Array<std::uint32_t> const positions(state_.stream.device(), count);
  kernels::concatenate_keys(state_.stream, unsorted, copied);
  std::vector<kernels::SortedKeys> sorts;
  std::size_t first = 0;
  for (auto const& place : places) {
    std::size_t const n = place.size();
    sorts.push_back({copied.view().slice(first, n), place, positions.view().slice(first, n)});
    first += n;
  }
  kernels::sort_keys(state_.stream, sorts);
}

// The lists of a table are found together, so their keys are one after another in memory.
void RowFinder::wait_find_added(kernels::HostReads& also) {
  auto& stream = state_.stream;
  std::map<TableId, std::vector<JoinedKeys const*>> by_table;
  std::size_t count = 0;
  for (auto const& list : added_) {
    by_table[list.part->table].push_back(&list);
    count += list.keys;
  }
  std::vector<View<Key const>> all;
  for (auto const& [table, lists] : by_table) {
    for (auto const* const list : lists) all.insert(all.end(), list->pieces.begin(), list->pieces.end());
  }
  keys_ = std::make_shared<Array<Key>>(stream.device(), count);
  kernels::concatenate_keys(stream, all, *keys_);
  merge_pieces(by_table);
  auto const ids = std::make_shared<Array<std::uint32_t>>(stream.device(), count);

  found_.clear();
  readers_.clear();
  std::size_t begin = 0;
  for (auto const& [table, lists] : by_table) {
    auto& shard = state_.table(table);
    auto& readers = readers_.emplace_back();
    std::size_t size = 0;
    std::vector<std::size_t> ends;
    for (auto const* const list : lists) {
      list->part->ids = ids->view().slice(begin + size, list->keys);
      list->part->ids_memory = ids;
      list->part->keys = keys_->view().slice(begin + size, list->keys);
      list->part->keys_memory = keys_;
      ends.push_back(size += list->keys);
      readers.push_back(list->reader);
    }
    found_.push_back({{&shard, keys_->view().slice(begin, size), ids->view().slice(begin, size)}, std::move(ends)});
    begin += size;
  }
  GPUPS_ASSERT(begin == count);  // each list has its numbers
  repeated_there_ = Array<std::uint32_t>(stream.device(), added_.size());
  TableShard::wait_resolve_lists(stream, found_, repeated_there_, also);
  added_.clear();
}

void RowFinder::read_wrong(kernels::HostReads& reads) {
  reads.add<std::uint32_t>(repeated_there_.view(), repeated_);
  reads.add<std::uint32_t>(foreign_there_.view(), foreign_);
}

void RowFinder::check_found() {
  GPUPS_ASSERT(repeated_.size() == repeated_there_.size() && readers_.size() == found_.size());
  for (std::size_t f = 0; f < foreign_.size(); ++f) {
    if (foreign_[f] == kernels::kNoRow) continue;
    auto const& [keys, home, table] = forwarded_[f];
    auto const key = to_host(state_.stream, keys.slice(foreign_[f], 1))[0];
    state_.throw_peer_error(Rank{home}, fmt::format("forwarded key {} of table '{}', whose home is another rank",
                                                    number(key), state_.table(TableId{table}).options().name));
  }
  auto const repeated = TableShard::wait_repeated_key(state_.stream, found_, repeated_);
  if (!repeated) return;
  state_.throw_peer_error(readers_[repeated->part][repeated->list],
                          fmt::format("announced key {} of table '{}' twice in a batch", number(repeated->key),
                                      found_[repeated->part].shard->options().name));
}

std::vector<ListPart> RowFinder::wait_find_late(ReaderBatchId const& of, Rank home) {
  auto const& list = state_.reader_batches.at(of).homes.at(home);
  std::vector<ListPart> parts(list.tables.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    parts[p].table = list.tables[p];
    add(of.first, {list.of(RowRole::kReadAndUpdate)[p].keys}, parts[p]);
  }
  add_forwarded(of.second);
  kernels::HostReads none(state_.stream), reads(state_.stream);
  wait_find_added(none);
  read_wrong(reads);
  reads.wait();
  check_found();
  return parts;
}

}  // namespace gpups::cache
