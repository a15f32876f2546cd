// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/leased_batches.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "cache/wire/row_coder.hpp"
#include "kernels/base/check.hpp"
#include "kernels/rows/gather_elements.hpp"
#include "kernels/rows/replicas.hpp"
#include "kernels/runtime/upload.hpp"
#include "kernels/sum/merge_gradients.hpp"

namespace gpups::cache {

ReplicaLeases& LeasedBatches::leases(TableId table) {
  return leases_.try_emplace(table, state_.staleness).first->second;
}

WaitingSums& LeasedBatches::sums(TableId table) {
  return sums_.try_emplace(table, state_.stream.device(), state_.table(table).options()).first->second;
}

// -- its rows are here --

// Returns the part of a table in the announced batch; null if it has none.
PreparedPart* LeasedBatches::part_of(DividedBatch& divided, TableId table) {
  auto& parts = divided.announced->parts;
  auto const found = std::find_if(parts.begin(), parts.end(), [=](auto const& part) { return part.table == table; });
  return found == parts.end() ? nullptr : &*found;
}

PreparedBatch::Impl& LeasedBatches::join_rows(Clock clock) {
  auto& stream = state_.stream;
  auto& divided = batches_.at(clock);
  auto& whole = *divided.whole;
  if (whole.ready) return whole;
  GPUPS_ASSERT(clock == state_.round.clock() && state_.round.applied() == clock - 1);
  GPUPS_ASSERT(divided.begun.size() == divided.announced->parts.size() && divided.parts.size() == whole.parts.size());
  std::vector<TableShard::ShardKeys> leased;
  std::vector<kernels::GatherElements<std::uint32_t>> gathers;
  std::vector<kernels::ScatterElements> scatters;
  std::vector<Array<std::uint32_t>> memory;
  std::vector<TableShard::Pin> pins;
  for (std::size_t q = 0; q < divided.begun.size(); ++q) {
    auto const& announced = divided.announced->parts[q];
    auto const& ids = memory.emplace_back(stream.device(), divided.begun[q].size());
    gathers.push_back({announced.ids, divided.begun[q], ids});
    pins.push_back({&state_.table(announced.table), ids});
  }
  for (std::size_t p = 0; p < divided.parts.size(); ++p) {
    auto const& part = divided.parts[p];
    auto const table = whole.parts[p].table;
    if (auto const* const announced = part_of(divided, table)) {
      auto const& ids = memory.emplace_back(stream.device(), part.whole_rows.size());
      gathers.push_back({announced->ids, part.announced_rows, ids});
      scatters.push_back({.from = ids, .positions = part.whole_rows, .to = whole.parts[p].ids});
    }
    leased.push_back({&state_.table(table), part.leased_keys, part.leased_ids});
    scatters.push_back({.from = part.leased_ids, .positions = part.leased_rows, .to = whole.parts[p].ids});
  }
  kernels::gather_elements(stream, gathers);
  TableShard::pin_replicas(stream, pins, clock + state_.staleness);
  TableShard::find(stream, leased);
  kernels::scatter_elements(stream, scatters);
  return whole;
}

void LeasedBatches::wait_pin_leaving(Clock clock) {
  auto& stream = state_.stream;
  struct LeavingRows {
    ListPart const* part;
    std::vector<Key> keys;
  };
  std::deque<LeavingRows> leaving;
  kernels::HostReads reads(stream);
  for (auto const& [id, batch] : state_.reader_batches) {
    if (id.second != clock || batch.is_late) continue;
    for (auto const& part : batch.moves) reads.add<Key>(part.keys, leaving.emplace_back(LeavingRows{&part, {}}).keys);
  }
  reads.wait();
  std::vector<Array<std::uint32_t>> memory;
  std::vector<kernels::GatherElements<std::uint32_t>> gathers;
  std::vector<TableShard::Pin> pins;
  for (auto const& [part, keys] : leaving) {
    auto const leased = leases(part->table).leased_at(View<Key const>(keys), clock);
    if (leased.empty()) continue;
    View<std::uint32_t const> const places = memory.emplace_back(to_device(stream, leased));
    auto const& pinned = memory.emplace_back(stream.device(), leased.size());
    gathers.push_back({part->ids, places, pinned});
    pins.push_back({&state_.table(part->table), pinned});
  }
  if (pins.empty()) return;
  kernels::gather_elements(stream, gathers);
  TableShard::pin_replicas(stream, pins, clock - 1 + state_.staleness);
}

// -- its step --

// Divides the leased rows into those that this rank owns in the step, and replicas.
void LeasedBatches::wait_find_owned(DividedBatch& divided) {
  auto& stream = state_.stream;
  kernels::HostReads reads(stream);
  struct LeasedRows {
    Array<std::uint32_t> words_there;
    std::vector<std::uint32_t> words, rows, ids;
    std::vector<Key> keys;
  };
  std::deque<LeasedRows> all;
  for (std::size_t p = 0; p < divided.whole->parts.size(); ++p) {
    auto& part = divided.parts[p];
    auto& leased = all.emplace_back();
    leased.words_there = Array<std::uint32_t>(stream.device(), part.leased_ids.size());
    state_.table(divided.whole->parts[p].table).read_uses(stream, part.leased_ids, leased.words_there);
    reads.add<std::uint32_t>(leased.words_there.view(), leased.words);
    reads.add<std::uint32_t>(part.leased_rows.view(), leased.rows);
    reads.add<std::uint32_t>(part.leased_ids.view(), leased.ids);
    reads.add<Key>(part.leased_keys.view(), leased.keys);
  }
  reads.wait();
  for (std::size_t p = 0; p < all.size(); ++p) {
    std::vector<std::uint32_t> owned_rows, owned_ids, replica_rows;
    std::vector<Key> replica_keys;
    divided.parts[p].owned_keys.clear();
    divided.parts[p].owned_entries.clear();
    std::vector<std::int64_t> counts;
    for (std::size_t i = 0; i < all[p].words.size(); ++i) {
      if (all[p].words[i] == kernels::kOwned) {
        owned_rows.push_back(all[p].rows[i]);
        owned_ids.push_back(all[p].ids[i]);
        divided.parts[p].owned_keys.push_back(all[p].keys[i]);
        divided.parts[p].owned_entries.push_back(divided.parts[p].leased_entries[i]);
        counts.push_back(divided.parts[p].leased_entries[i]);
      } else {
        replica_rows.push_back(all[p].rows[i]);
        replica_keys.push_back(all[p].keys[i]);
      }
    }
    auto& part = divided.parts[p];
    GPUPS_ASSERT(owned_rows.size() + replica_rows.size() == part.leased_entries.size());
    part.owned_rows = to_device(stream, owned_rows);
    part.owned_ids = to_device(stream, owned_ids);
    part.owned_counts = to_device(stream, counts);
    part.replica_rows = to_device(stream, replica_rows);
    part.replica_keys = to_device(stream, replica_keys);
  }
}

void LeasedBatches::append_owned(Clock clock, TableId table, std::vector<RowSums>& lists) {
  auto const found = batches_.find(clock);
  if (found == batches_.end()) return;
  auto const& [whole, announced, parts, begun, taken] = found->second;
  for (std::size_t p = 0; p < whole->parts.size(); ++p) {
    auto& part = whole->parts[p];
    if (part.table != table || parts[p].owned_ids.empty()) continue;
    lists.push_back({.ids = parts[p].owned_ids,
                     .sums = part.sums,
                     .counts = parts[p].owned_counts,
                     .positions = parts[p].owned_rows});
  }
}

BatchPtr LeasedBatches::wait_join_sums(PreparedBatch::Impl const& whole, std::string& error) {
  auto& stream = state_.stream;
  auto& divided = batches_.at(whole.clock);
  GPUPS_ASSERT(whole.clock == state_.round.clock() && divided.whole.get() == &whole);
  divided.taken.clear();
  wait_find_owned(divided);
  for (auto& announced : divided.announced->parts) {
    auto const& options = state_.table(announced.table).options();
    announced.sums = Matrix<std::int64_t>(stream.device(), announced.rows, options.dim);
    memory::fill_bytes(stream, announced.sums.view().data(), 0, announced.sums.view().flat().bytes());
    auto const bad_row = make_bad_row(stream);
    for (std::size_t p = 0; p < whole.parts.size(); ++p) {
      if (whole.parts[p].table != announced.table) continue;
      kernels::merge_sums(stream, {.into = announced.sums,
                                   .slots = divided.parts[p].announced_rows,
                                   .sums = whole.parts[p].sums,
                                   .bad_row = bad_row,
                                   .positions = divided.parts[p].whole_rows});
    }
    divided.taken.push_back(sums(announced.table).wait_read(stream, announced.keys, announced.sums, bad_row));
    auto const row = to_host(stream, bad_row.view())[0];
    if (row == kernels::kNoRow || !error.empty()) continue;
    error = fmt::format(
        "the gradients of key {} in table '{}' are too large on rank {} at step {}, with those of earlier steps (the "
        "step was rejected on all ranks): check the data, or start again with a lower learning rate",
        number(to_host(stream, announced.keys.slice(row, 1))[0]), options.name, number(state_.me), number(whole.clock));
  }
  return divided.announced;
}

void LeasedBatches::wait_end_step(Clock clock, bool rejected) {
  auto& stream = state_.stream;
  for (auto& [table, of_table] : leases_) of_table.complete(clock);
  auto const node = batches_.extract(clock);
  if (node.empty()) return;
  auto& divided = node.mapped();
  // Without a push, nothing was taken. The sums of a step are kept when the owners have those that were sent.
  GPUPS_ASSERT(divided.taken.empty() || divided.taken.size() == divided.announced->parts.size());
  GPUPS_ASSERT(state_.round.applied() == clock);
  for (std::size_t p = 0; p < divided.taken.size(); ++p) {
    auto const table = divided.announced->parts[p].table;
    if (rejected) {
      leases(table).retry(divided.taken[p]);
    } else if (!divided.taken[p].empty()) {
      sums(table).wait_drop(stream, to_device(stream, divided.taken[p]));
    }
  }
  for (std::size_t p = 0; p < divided.whole->parts.size(); ++p) {
    auto& part = divided.whole->parts[p];
    auto const& of_part = divided.parts[p];
    leases(part.table).record_applied(View<Key const>(of_part.owned_keys), of_part.owned_entries, clock);
    if (!rejected && !of_part.replica_rows.empty()) {
      sums(part.table).wait_add(stream, clock, of_part.replica_keys, part.sums, of_part.replica_rows);
    }
    part.end_step();
  }
}

// -- between steps --

void LeasedBatches::clear() {
  for (auto& [table, of_table] : leases_) of_table.clear();
}

std::vector<Key> LeasedBatches::wait_keys(TableId table) const {
  auto const found = sums_.find(table);
  return found == sums_.end() ? std::vector<Key>{} : found->second.wait_keys(state_.stream);
}

void LeasedBatches::wait_drop(TableId table, View<Key const> keys) {
  auto const found = sums_.find(table);
  if (found == sums_.end()) return;
  found->second.wait_drop(state_.stream, keys);
  leases(table).drop(to_host(state_.stream, keys));
}

void LeasedBatches::wait_save(ResidualFile& file) const {
  for (auto const& [table, of_table] : sums_) {
    auto chunk = of_table.wait_save(state_.stream);
    chunk.table = table;
    chunk.peer = state_.me;  // after a restore, the owners of the rows add them
    if (!chunk.keys.empty()) file.chunks.push_back(std::move(chunk));
  }
}

ReplicaLeases::Counts LeasedBatches::counts() const {
  ReplicaLeases::Counts all;
  for (auto const& [table, of_table] : leases_) {
    auto const& counts = of_table.counts();
    all = {all.reads + counts.reads, all.age + counts.age, std::max(all.age_max, counts.age_max)};
  }
  return all;
}

}  // namespace gpups::cache
