// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/reader/leased_batches.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/rows/gather_elements.hpp"
#include "kernels/rows/replicas.hpp"

namespace gpups::cache {

void LeasedBatches::start() {
  GPUPS_ASSERT(state_.staleness > 0 && !leases_);
  leases_.emplace(state_.stream.device(), state_.tables.size(), state_.staleness, state_.ranks, state_.me);
  for (auto const& table : state_.tables) sums_.emplace_back(state_.stream.device(), table->options());
  step_rows_.resize(state_.tables.size());
}

// -- it is announced --

// Returns the most leases of each table.
std::vector<std::size_t> LeasedBatches::leases_max(PreparedBatch::Impl const& whole) {
  std::vector<std::size_t> rows(step_rows_.size()), most;
  for (auto const& part : whole.parts) rows[number(part.table)] += part.rows - part.rows_at(state_.me);
  for (std::uint32_t t = 0; t < rows.size(); ++t) {
    step_rows_[t] = std::max(step_rows_[t], rows[t]);
    most.push_back(state_.table(TableId{t}).pin_budget(step_rows_[t]));
  }
  return most;
}

// owners: room for the owners of the rows of this home.
std::vector<UndividedPart> LeasedBatches::undivided(PreparedBatch::Impl const& whole, Array<std::uint32_t>& owners) {
  auto& stream = state_.stream;
  bool const any_moved = state_.placement.any_moved;
  std::size_t own = 0;
  for (auto const& part : whole.parts) own += any_moved ? part.rows_at(state_.me) : 0;
  owners = Array<std::uint32_t>(stream.device(), own);
  std::vector<UndividedPart> parts;
  std::vector<OwnerDirectories::OwnersOfRows> lists;
  std::size_t first = 0;
  for (auto const& part : whole.parts) {
    bool const counts = state_.table(part.table).counts_occurrences();
    auto& undivided = parts.emplace_back(UndividedPart{.table = part.table,
                                                       .keys = part.keys,
                                                       .homes = part.homes,
                                                       .offsets = counts ? part.offsets : part.offsets.slice(0, 0)});
    if (!any_moved) continue;
    std::size_t const size = part.rows_at(state_.me);
    auto const of_part = owners.view().slice(std::exchange(first, first + size), size);
    undivided.owners = of_part;
    lists.push_back({part.table, part.keys_at(state_.me), of_part});
  }
  if (!lists.empty()) state_.placement.find_owners(stream, lists, whole.clock);
  return parts;
}

// Makes the announced batch. It has no entries: its sums are not those of a push.
BatchPtr LeasedBatches::make_announced(BatchPattern::Impl const& whole, DividedRows& rows, Clock clock) const {
  auto const pattern = std::make_shared<BatchPattern::Impl>();
  pattern->store = whole.store;
  pattern->samples = whole.samples;
  pattern->keys = std::move(rows.keys);
  pattern->words = std::move(rows.offsets);
  for (std::uint32_t t = 0; t < rows.tables.size(); ++t) {
    auto const& of_table = rows.tables[t];
    std::uint32_t const count = of_table.homes.back();
    if (count == 0) continue;
    auto& part = pattern->parts.emplace_back();
    part.table = TableId{t};
    part.rows = count;
    part.homes = of_table.homes;
    part.keys = pattern->keys.view().slice(of_table.first, count);
    part.offsets = pattern->words.view().slice(of_table.first, count + 1);
  }
  return std::make_shared<PreparedBatch::Impl>(pattern, clock);
}

BatchPtr LeasedBatches::wait_divide(BatchPtr const& whole, std::int64_t& unannounced) {
  Clock const clock = whole->clock;
  GPUPS_ASSERT(!batches_.contains(clock));
  bool const sends_all = synchronized_.erase(clock) > 0;
  if (sends_all) synchronized_until_ = std::max(synchronized_until_, clock);
  for (auto& part : whole->parts) part.ids = Array<std::uint32_t>(state_.stream.device(), part.rows);
  auto const most = leases_max(*whole);
  Array<std::uint32_t> owners;
  DividedBatch divided{.whole = whole, .announced = nullptr, .rows = {}};
  divided.rows = leases_->wait_divide(state_.stream, undivided(*whole, owners),
                                      {.step = clock,
                                       .leases_max = most,
                                       .plans_own = state_.placement.any_moved,
                                       .refresh_all = clock <= synchronized_until_,
                                       .send_all = sends_all});
  for (auto const& part : divided.rows.parts) unannounced += static_cast<std::int64_t>(part.leased_elsewhere);
  unannounced -= static_cast<std::int64_t>(divided.rows.due_elsewhere);
  divided.announced = make_announced(*whole->pattern, divided.rows, clock);
  return batches_.emplace(clock, std::move(divided)).first->second.announced;
}

// -- its rows are here --

// Returns the part of a table in the announced batch; null if it has none.
PreparedPart const* LeasedBatches::DividedBatch::part_of(TableId table) const {
  auto const found = std::find_if(announced->parts.begin(), announced->parts.end(),
                                  [=](auto const& part) { return part.table == table; });
  return found == announced->parts.end() ? nullptr : &*found;
}

PreparedBatch::Impl& LeasedBatches::join_rows(Clock clock) {
  auto& stream = state_.stream;
  auto& divided = batches_.at(clock);
  auto& whole = *divided.whole;
  if (whole.ready) return whole;
  GPUPS_ASSERT(clock == state_.round.clock() && state_.round.applied() == clock - 1);
  auto const& rows = divided.rows;
  GPUPS_ASSERT(rows.parts.size() == whole.parts.size());
  std::vector<TableShard::ShardKeys> leased;
  std::vector<kernels::GatherElements<std::uint32_t>> gathers;
  std::vector<kernels::ScatterElements> scatters;
  std::vector<Array<std::uint32_t>> memory;
  std::vector<TableShard::Pin> pins;
  for (auto const& announced : divided.announced->parts) {
    auto const begun = rows.tables[number(announced.table)].begun;
    auto const& ids = memory.emplace_back(stream.device(), begun.size());
    gathers.push_back({announced.ids, begun, ids});
    pins.push_back({&state_.table(announced.table), ids});
  }
  divided.leased_ids = Array<std::uint32_t>(stream.device(), rows.leased_keys.size());
  for (std::size_t p = 0; p < rows.parts.size(); ++p) {
    auto const& part = rows.parts[p];
    auto const table = whole.parts[p].table;
    if (auto const* const announced = divided.part_of(table)) {
      auto const& ids = memory.emplace_back(stream.device(), part.whole_rows.size());
      gathers.push_back({announced->ids, part.announced_rows, ids});
      scatters.push_back({.from = ids, .positions = part.whole_rows, .to = whole.parts[p].ids});
    }
    auto const ids = divided.leased_ids.view().slice(part.first, part.leased_rows.size());
    leased.push_back({&state_.table(table), part.leased_keys, ids});
    scatters.push_back({.from = ids, .positions = part.leased_rows, .to = whole.parts[p].ids});
  }
  kernels::gather_elements(stream, gathers);
  TableShard::pin_replicas(stream, pins, clock + state_.staleness);
  TableShard::find(stream, leased);
  kernels::scatter_elements(stream, scatters);
  return whole;
}

void LeasedBatches::pin_leaving(Clock clock) {
  std::vector<ReplicaLeases::KeyedRows> leaving;
  std::vector<Array<std::uint32_t>> memory;
  std::vector<TableShard::Pin> pins;
  for (auto const& [id, batch] : state_.reader_batches) {
    if (id.second != clock || batch.is_late) continue;
    for (auto const& part : batch.moves) {
      if (part.ids.empty()) continue;
      auto const& pinned = memory.emplace_back(state_.stream.device(), part.ids.size());
      leaving.push_back({part.table, part.keys, part.ids, pinned});
      pins.push_back({&state_.table(part.table), pinned});
    }
  }
  if (pins.empty()) return;
  leases_->select_leased(state_.stream, leaving, clock);
  TableShard::pin_replicas(state_.stream, pins, clock - 1 + state_.staleness);
}

// -- between steps --

void LeasedBatches::clear() {
  if (leases_) leases_->clear(state_.stream);
}

std::vector<Key> LeasedBatches::wait_keys(TableId table) {
  if (!leases_) return {};
  wait_check_added();
  return sums_[number(table)].wait_keys(state_.stream);
}

void LeasedBatches::wait_drop(TableId table, View<Key const> keys) {
  if (!leases_) return;
  sums_[number(table)].wait_drop(state_.stream, keys);
  leases_->drop(state_.stream, {table, keys});
}

void LeasedBatches::wait_save(ResidualFile& file) {
  wait_check_added();
  for (std::uint32_t t = 0; t < sums_.size(); ++t) {
    auto chunk = sums_[t].wait_save(state_.stream);
    chunk.table = TableId{t};
    chunk.kind = ResidualChunk::Kind::kWaits;
    if (!chunk.keys.empty()) file.chunks.push_back(std::move(chunk));
  }
}

}  // namespace gpups::cache
