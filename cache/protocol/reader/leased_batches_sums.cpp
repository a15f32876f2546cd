// SPDX-License-Identifier: Apache-2.0
// LeasedBatches: the sums of leased and announced rows, in a step and after it.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "cache/feedback/key_age_index.hpp"
#include "cache/protocol/reader/leased_batches.hpp"
#include "kernels/base/check.hpp"
#include "kernels/placement/partition.hpp"
#include "kernels/rows/gather_elements.hpp"
#include "kernels/sum/merge_gradients.hpp"

namespace gpups::cache {

using kernels::ListWaiting;

// Returns the parts of the whole batch, such that no two parts of a pass have the same table: in one pass, each row is
// written once.
std::vector<std::vector<std::size_t>> LeasedBatches::passes(DividedBatch const& divided) const {
  std::vector<std::vector<std::size_t>> passes;
  std::vector<std::size_t> parts_of(sums_.size());
  for (std::size_t const p : divided.rows.by_table) {
    std::size_t const n = parts_of[number(divided.whole->parts[p].table)]++;
    if (n == passes.size()) passes.emplace_back();
    passes[n].push_back(p);
  }
  return passes;
}

BatchPtr LeasedBatches::join_sums(PreparedBatch::Impl const& whole, kernels::HostReads& reads) {
  auto& divided = batches_.at(whole.clock);
  GPUPS_ASSERT(whole.clock == state_.round.clock() && divided.whole.get() == &whole);
  divided.joined.emplace();
  list_sums(divided, reads);
  add_up(divided);
  reads.add<std::uint32_t>(divided.joined->bad_rows_there.view(), divided.joined->bad_rows);
  if (added_) reads.add<std::uint32_t>(added_->bad_items_there.view(), added_->bad_items);
  return divided.announced;
}

// Lists the leased rows that this rank owns, and those with slots and without; and the announced rows with slots.
void LeasedBatches::list_sums(DividedBatch& divided, kernels::HostReads& reads) {
  auto& stream = state_.stream;
  auto& joined = *divided.joined;
  auto const leased = divided.leased_ids.size();
  std::size_t items = leased;
  for (auto const& part : divided.announced->parts) items += part.rows;
  auto const words = [&](std::size_t size) { return Array<std::uint32_t>(stream.device(), size); };
  joined.slots = words(items), joined.items = words(items), joined.uses = words(leased);
  std::vector<WaitingSums::SlotsOfKeys> searched;
  std::vector<TableShard::UsesOfRows> uses;
  std::vector<ListWaiting::ItemsOfList> lists;
  auto const add = [&](TableId table, View<Key const> keys, std::size_t first, ListWaiting::ItemsOfList list) {
    searched.push_back({&sums_[number(table)], keys, joined.slots.view().slice(first, keys.size())});
    lists.push_back(list);
  };
  for (std::uint32_t k = 0; k < divided.parts(); ++k) {
    auto const p = divided.rows.by_table[k];
    auto const& [table, part] = std::pair(divided.whole->parts[p].table, divided.rows.parts[p]);
    auto const size = static_cast<std::uint32_t>(part.leased_keys.size());
    add(table, part.leased_keys, part.first, {size, k, false});
    uses.push_back({&state_.table(table), divided.leased_ids.view().slice(part.first, size),
                    joined.uses.view().slice(part.first, size)});
  }
  std::size_t first = leased;
  for (auto const& part : divided.announced->parts) {
    add(part.table, part.keys, std::exchange(first, first + part.rows),
        {static_cast<std::uint32_t>(part.rows), number(part.table), true});
  }
  WaitingSums::find(stream, searched);
  TableShard::read_uses(stream, uses);
  auto const list_of = words(items);
  auto const count = ListWaiting::count(divided.parts(), static_cast<std::uint32_t>(sums_.size()));
  joined.first_there = words(count + 1);
  kernels::list_waiting(stream, {lists, divided.parts(), joined.slots, joined.uses, list_of});
  kernels::partition_items(stream, {list_of, count, joined.items, joined.first_there});
  reads.add<std::uint32_t>(joined.first_there.view(), joined.first);
}

// Adds up the sums of announced rows: those of all parts of the whole batch, and those that have waited.
void LeasedBatches::add_up(DividedBatch& divided) {
  auto& stream = state_.stream;
  auto& joined = *divided.joined;
  auto& announced = divided.announced->parts;
  joined.bad_rows_there = Array<std::uint32_t>(stream.device(), announced.size());
  memory::fill_bytes(stream, joined.bad_rows_there.data(), 0xFF, joined.bad_rows_there.bytes());  // kNoRow
  std::vector<kernels::MergeWaiting> waiting;
  std::size_t first = divided.leased_ids.size();
  for (std::size_t a = 0; a < announced.size(); ++a) {
    auto& part = announced[a];
    part.sums = Matrix<std::int64_t>(stream.device(), part.rows, state_.table(part.table).dim());
    memory::fill_bytes(stream, part.sums.view().data(), 0, part.sums.view().flat().bytes());
    waiting.push_back({sums_[number(part.table)].rows(),
                       joined.slots.view().slice(std::exchange(first, first + part.rows), part.rows), part.sums,
                       joined.bad_rows_there.view().slice(a, 1)});
  }
  for (auto const& pass : passes(divided)) {
    std::vector<kernels::MergeSums> merges;
    for (std::size_t const p : pass) {
      auto const* const to = divided.part_of(divided.whole->parts[p].table);
      auto const& part = divided.rows.parts[p];
      if (part.whole_rows.empty()) continue;
      merges.push_back(
          {.into = to->sums,
           .slots = part.announced_rows,
           .sums = divided.whole->parts[p].sums,
           .bad_row = joined.bad_rows_there.view().slice(static_cast<std::size_t>(to - announced.data()), 1),
           .positions = part.whole_rows});
    }
    if (!merges.empty()) kernels::merge_sums(stream, merges);
  }
  kernels::merge_waiting(stream, waiting);
}

void LeasedBatches::end_join(Clock clock, std::string& error) {
  auto& stream = state_.stream;
  check_added();
  auto& divided = batches_.at(clock);
  auto& joined = *divided.joined;
  auto const owned = joined.of(ListWaiting::owned(0), divided.parts());
  joined.owned_ids = Array<std::uint32_t>(stream.device(), owned.size());
  joined.owned_rows = Array<std::uint32_t>(stream.device(), owned.size());
  joined.owned_entries = Array<std::int64_t>(stream.device(), owned.size());
  auto const& rows = divided.rows;
  std::size_t const leased = divided.leased_ids.size();
  kernels::owned_uses(stream, {.items = owned,
                               .ids = divided.leased_ids,
                               .rows = rows.rows.view().slice(rows.rows.size() - leased, leased),
                               .entries = rows.leased_entries,
                               .owned_ids = joined.owned_ids,
                               .owned_rows = joined.owned_rows,
                               .owned_entries = joined.owned_entries});
  for (std::size_t a = 0; a < joined.bad_rows.size() && error.empty(); ++a) {
    auto const row = joined.bad_rows[a];
    if (row == kernels::kNoRow) continue;
    auto const& part = divided.announced->parts[a];
    error = fmt::format(
        "the gradients of key {} in table '{}' are too large on rank {} at step {}, with those of earlier steps (the "
        "step was rejected on all ranks): check the data, or start again with a lower learning rate",
        number(to_host(stream, part.keys.slice(row, 1))[0]), state_.table(part.table).options().name, number(state_.me),
        number(clock));
  }
}

void LeasedBatches::append_owned(Clock clock, TableId table, std::vector<RowSums>& lists) {
  auto const found = batches_.find(clock);
  if (found == batches_.end() || !found->second.joined) return;
  auto const& divided = found->second;
  auto const& joined = *divided.joined;
  for (std::uint32_t k = 0; k < divided.parts(); ++k) {
    auto& part = divided.whole->parts[divided.rows.by_table[k]];
    std::uint32_t const first = joined.first[ListWaiting::owned(k)], size = joined.size(ListWaiting::owned(k));
    if (part.table != table || size == 0) continue;
    lists.push_back({.ids = joined.owned_ids.view().slice(first, size),
                     .sums = part.sums,
                     .counts = joined.owned_entries.view().slice(first, size),
                     .positions = joined.owned_rows.view().slice(first, size)});
  }
}

// -- its step ends --

void LeasedBatches::wait_end_step(Clock clock, bool rejected) {
  if (!leases_) return;
  leases_->complete(clock);
  auto const node = batches_.extract(clock);
  if (node.empty()) return;
  auto& divided = node.mapped();
  GPUPS_ASSERT(state_.round.applied() == clock);
  if (divided.joined) {  // otherwise the batch was not pushed
    rejected ? retry_sent(divided) : drop_sent(divided);
    std::vector<ReplicaLeases::AppliedRows> applied;
    for (std::uint32_t k = 0; k < divided.parts(); ++k) {
      auto const owned = divided.joined->of(ListWaiting::owned(k));
      if (owned.empty()) continue;
      applied.push_back({divided.whole->parts[divided.rows.by_table[k]].table, divided.rows.leased_records,
                         divided.rows.leased_entries, owned});
    }
    if (!applied.empty()) leases_->count_applied(state_.stream, applied, clock);
    if (!rejected) wait_keep(divided, clock);
  }
  for (auto& part : divided.whole->parts) part.end_step();
}

// Drops the sums that were sent. The owners have them.
void LeasedBatches::drop_sent(DividedBatch& divided) {
  auto& stream = state_.stream;
  auto const& joined = *divided.joined;
  auto const tables = static_cast<std::uint32_t>(sums_.size());
  auto const first = ListWaiting::taken(divided.parts(), 0);
  if (joined.size(first, tables) == 0) return;
  Array<std::uint32_t> const cleared(stream.device(), joined.size(first, tables));
  std::vector<kernels::ClearWaiting> clears;
  std::vector<WaitingSums::ClearedSlots> erased;
  std::size_t at = 0;
  for (std::uint32_t t = 0; t < tables; ++t) {
    auto const taken = joined.of(first + t);
    if (taken.empty()) continue;
    auto const of_table = cleared.view().slice(std::exchange(at, at + taken.size()), taken.size());
    clears.push_back({.from = sums_[t].rows(), .slots = joined.slots, .items = taken, .cleared = of_table});
    erased.push_back({&sums_[t], of_table});
  }
  kernels::clear_waiting(stream, clears);
  WaitingSums::erase(stream, erased);
}

// Makes the rows due again whose sums would have been sent.
void LeasedBatches::retry_sent(DividedBatch const& divided) {
  auto& stream = state_.stream;
  auto const leased = static_cast<std::uint32_t>(divided.leased_ids.size());
  std::vector<Array<std::uint32_t>> memory;
  std::vector<Array<Key>> keys_memory;
  std::vector<kernels::ItemNumbers> numbers;
  std::vector<kernels::GatherElements<Key>> gathers;
  std::vector<ReplicaLeases::KeysOfTable> retried;
  std::uint32_t first = leased;
  for (auto const& part : divided.announced->parts) {
    auto const taken = divided.joined->of(ListWaiting::taken(divided.parts(), number(part.table)));
    auto const& rows = memory.emplace_back(stream.device(), taken.size());
    auto const& keys = keys_memory.emplace_back(stream.device(), taken.size());
    numbers.push_back({taken, first, rows});
    gathers.push_back({part.keys, rows, keys});
    retried.push_back({part.table, keys});
    first += static_cast<std::uint32_t>(part.rows);
  }
  kernels::item_numbers(stream, numbers);
  kernels::gather_elements(stream, gathers);
  leases_->retry(stream, retried);
}

// Keeps the gradients of leased rows that other ranks own.
void LeasedBatches::wait_keep(DividedBatch& divided, Clock clock) {
  auto& stream = state_.stream;
  auto& joined = *divided.joined;
  auto& rows = divided.rows;
  auto const parts = divided.parts();
  auto const fresh = joined.of(ListWaiting::fresh(parts, 0), parts);
  if (joined.size(ListWaiting::known(parts, 0), parts) + fresh.size() == 0) return;
  Array<std::uint32_t> const new_slots(stream.device(), fresh.size());
  Array<Key> const new_keys(stream.device(), fresh.size());
  kernels::gather_elements(stream, kernels::GatherElements<Key>{rows.leased_keys, fresh, new_keys});
  std::vector<WaitingSums::SlotsOfKeys> insertions;
  std::size_t at = 0;
  for (std::uint32_t k = 0; k < parts; ++k) {
    auto& sums = sums_[number(divided.whole->parts[rows.by_table[k]].table)];
    std::size_t const size = joined.size(ListWaiting::fresh(parts, k));
    if (!insertions.empty() && insertions.back().sums == &sums) {
      auto& before = insertions.back();
      std::size_t const first = at - before.keys.size();
      before = {&sums, new_keys.view().slice(first, at + size - first),
                new_slots.view().slice(first, at + size - first), false};
    } else {
      insertions.push_back({&sums, new_keys.view().slice(at, size), new_slots.view().slice(at, size)});
    }
    at += size;
  }
  WaitingSums::wait_insert(stream, insertions);
  added_.emplace(AddedSums{Array<std::uint32_t>(stream.device(), parts), {}, {}});
  memory::fill_bytes(stream, added_->bad_items_there.data(), 0xFF, added_->bad_items_there.bytes());  // kNoRow
  std::vector<std::uint32_t> place(parts);
  for (std::uint32_t k = 0; k < parts; ++k) {
    place[rows.by_table[k]] = k;
    added_->tables.push_back(divided.whole->parts[rows.by_table[k]].table);
  }
  std::size_t const leased = divided.leased_ids.size();
  auto const leased_rows = rows.rows.view().slice(rows.rows.size() - leased, leased);
  for (auto const& pass : passes(divided)) {
    std::vector<kernels::AddWaiting> lists;
    for (std::size_t const p : pass) {
      auto const& part = divided.whole->parts[p];
      std::uint32_t const k = place[p];
      kernels::AddWaiting list{.to = sums_[number(part.table)].rows(),
                               .sums = part.sums,
                               .rows = leased_rows,
                               .items = joined.of(ListWaiting::known(parts, k)),
                               .slots = joined.slots,
                               .slots_by_item = true,
                               .bad_item = added_->bad_items_there.view().slice(k, 1)};
      if (!list.items.empty()) lists.push_back(list);
      std::uint32_t const of_new = ListWaiting::fresh(parts, k);
      list.items = joined.of(of_new);
      list.slots =
          new_slots.view().slice(joined.first[of_new] - joined.first[ListWaiting::fresh(parts, 0)], list.items.size());
      list.slots_by_item = false;
      if (!list.items.empty()) lists.push_back(list);
    }
    if (!lists.empty()) {
      kernels::add_waiting(stream, lists, stamp_of(clock));
    }
  }
  added_->keys = std::move(rows.leased_keys);
}

void LeasedBatches::wait_check_added() {
  if (!added_) return;
  added_->bad_items = to_host(state_.stream, added_->bad_items_there.view());
  check_added();
}

// Throws Error if a sum that was added is too large.
void LeasedBatches::check_added() {
  auto const added = std::exchange(added_, std::nullopt);
  if (!added) return;
  for (std::size_t k = 0; k < added->bad_items.size(); ++k) {
    if (added->bad_items[k] == kernels::kNoRow) continue;
    sums_[number(added->tables[k])].throw_too_large(
        to_host(state_.stream, added->keys.view().slice(added->bad_items[k], 1))[0]);
  }
}

}  // namespace gpups::cache
