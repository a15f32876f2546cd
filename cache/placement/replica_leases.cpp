// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/replica_leases.hpp"

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/index/sort_keys.hpp"
#include "kernels/placement/partition.hpp"
#include "kernels/rows/gather_elements.hpp"
#include "kernels/runtime/host_reads.hpp"

namespace gpups::cache {

using kernels::LeaseLists;
using kernels::LeaseRecord;

ReplicaLeases::ReplicaLeases(Device device, std::size_t tables, std::int64_t staleness, int ranks, Rank me)
    : device_(device),
      staleness_(static_cast<std::uint64_t>(staleness)),
      ranks_(static_cast<std::uint32_t>(ranks)),
      me_(number(me)),
      tables_(tables) {
  for (auto& table : tables_) {
    table.index = kernels::KeyIndex(device, 0, LeasedTable::kGrowth);
    table.records = {device, kernels::kLeaseWords, kernels::NewRows::kZero, LeasedTable::kGrowth};
  }
}

std::size_t ReplicaLeases::bytes_for(std::size_t rows) {
  return kernels::KeyIndex::bytes_for(rows, LeasedTable::kGrowth) +
         kernels::RowStorage<std::uint64_t>::bytes_for(rows, kernels::kLeaseWords, LeasedTable::kGrowth);
}

DividedRows ReplicaLeases::wait_divide(Stream& stream, std::span<UndividedPart const> parts,
                                       BatchDivision const& division) {
  GPUPS_ASSERT(division.leases_max.size() == tables_.size());
  auto const batch = join_parts(stream, parts, tables_.size());
  find_records(stream, parts, batch, division.plans_own);
  auto lists = wait_list(stream, parts, batch, division);
  wait_index(stream, batch, lists);
  DividedRows divided{.by_table = batch.by_table};
  list_announced(stream, tables_, batch, lists, LeaseRecord::number_of(number(division.step)), me_, divided);
  grant(stream, batch, lists, division, divided);
  list_uses(stream, parts, batch, lists, divided);
  return divided;
}

// -- which lists rows are in --

// Writes the numbers of records, or kNoRow.
void ReplicaLeases::find(Stream& stream, std::span<KeysOfTable const> lists,
                         std::span<View<std::uint32_t> const> ids) const {
  std::vector<kernels::KeyIndex::Search> searches;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    auto const& index = tables_[number(lists[i].table)].index;
    if (index.size() > 0) {
      searches.push_back({&index, lists[i].keys, ids[i]});
    } else {
      memory::fill_bytes(stream, ids[i].data(), 0xFF, ids[i].bytes());
    }
  }
  if (!searches.empty()) kernels::KeyIndex::find(stream, searches);
}

// Finds the records of rows. Those of this home need none, unless they may have other owners.
void ReplicaLeases::find_records(Stream& stream, std::span<UndividedPart const> parts, UndividedColumns const& batch,
                                 bool plans_own) const {
  memory::fill_bytes(stream, batch.ids.data(), 0xFF, batch.ids.bytes());  // kNoRow
  std::vector<KeysOfTable> searched;
  std::vector<View<std::uint32_t>> ids;
  for (std::size_t const p : batch.by_table) {
    std::uint32_t const own = parts[p].homes[me_], others = parts[p].homes[me_ + 1], first = batch.first_row[p];
    auto const search = [&](std::uint32_t from, std::size_t size) {
      searched.push_back({parts[p].table, batch.keys.view().slice(first + from, size)});
      ids.push_back(batch.ids.view().slice(first + from, size));
    };
    if (plans_own) {
      search(0, parts[p].keys.size());
    } else {
      search(0, own);
      search(others, parts[p].keys.size() - others);
    }
  }
  find(stream, searched, ids);
}

std::vector<kernels::RowsOfHome> ReplicaLeases::rows_of_homes(std::span<UndividedPart const> parts,
                                                              UndividedColumns const& batch, bool plans_own) const {
  std::vector<kernels::RowsOfHome> homes;
  for (std::size_t const p : batch.by_table) {
    auto const& part = parts[p];
    for (std::uint32_t q = 0; q < ranks_; ++q) {
      std::uint32_t const size = part.homes[q + 1] - part.homes[q];
      if (size == 0) continue;
      bool const is_mine = q == me_;
      homes.push_back({.records = tables_[number(part.table)].records.ref(),
                       .first = batch.first_row[p] + part.homes[q],
                       .size = size,
                       .table = number(part.table),
                       .part = static_cast<std::uint32_t>(p),
                       .home = q,
                       .offsets = part.offsets.empty() ? part.offsets : part.offsets.slice(part.homes[q], size + 1),
                       .owners = is_mine ? part.owners : View<std::uint32_t const>{},
                       .may_lease = plans_own || !is_mine,
                       .is_mine = is_mine && ranks_ > 1,
                       .has_repeats = batch.has_repeats[number(part.table)]});
    }
  }
  return homes;
}

// Decides how each row is used, and which rows are due.
LeaseListItems ReplicaLeases::wait_list(Stream& stream, std::span<UndividedPart const> parts,
                                        UndividedColumns const& batch, BatchDivision const& division) {
  LeaseListItems lists{
      .of = {static_cast<std::uint32_t>(tables_.size()), ranks_, static_cast<std::uint32_t>(parts.size())}};
  std::vector<kernels::ListDue::RecordsOfTable> records;
  std::uint32_t all_records = 0;
  for (auto const& table : tables_) {
    auto const size = static_cast<std::uint32_t>(table.index.ids_end());
    records.push_back({table.records.ref(), table.index.keys(), size, static_cast<std::uint32_t>(records.size())});
    lists.first_record.push_back(all_records);
    all_records += size;
  }
  lists.at = {batch.rows, all_records};
  Array<std::uint32_t> const list_of(device_, lists.at.count()), first(device_, lists.of.count() + 1),
      least_left(device_, 1);
  Array<std::uint64_t> const ages(device_, kernels::kAgeSums);
  memory::fill_bytes(stream, ages.data(), 0, ages.bytes());
  memory::fill_bytes(stream, least_left.data(), 0xFF, least_left.bytes());
  kernels::LeaseSteps const steps{.step = LeaseRecord::number_of(number(division.step)),
                                  .staleness = staleness_,
                                  .complete = LeaseRecord::number_of(number(complete_)),
                                  .refresh_all = division.refresh_all,
                                  .send_all = division.send_all};
  kernels::plan_leases(stream, {.homes = rows_of_homes(parts, batch, division.plans_own),
                                .lists = lists.of,
                                .items = lists.at,
                                .steps = steps,
                                .ids = batch.ids,
                                .first_of = batch.first_of,
                                .occurrences = batch.occurrences,
                                .list_of = list_of,
                                .ages = ages,
                                .least_left = least_left});
  kernels::list_due(stream, {records, lists.of, steps, list_of.view().slice(lists.at.records_at(), all_records)});
  lists.items = Array<std::uint32_t>(device_, lists.at.count());
  kernels::partition_items(stream, {list_of, lists.of.count(), lists.items, first});
  kernels::HostReads reads(stream);
  std::vector<std::uint64_t> age_sums;
  std::vector<std::uint32_t> least;
  reads.add<std::uint32_t>(first.view(), lists.first);
  reads.add<std::uint64_t>(ages.view(), age_sums);
  reads.add<std::uint32_t>(least_left.view(), least);
  reads.wait();
  for (std::uint32_t p = 0; p < parts.size(); ++p) {
    counts_.reads += lists.size(lists.of.used(p, LeaseLists::kLeasedAtHome), 2);
  }
  counts_.age = std::accumulate(age_sums.begin(), age_sums.end(), counts_.age);
  counts_.age_max = std::max<std::uint64_t>(counts_.age_max, ~least[0]);
  return lists;
}

// Forgets records, and gives numbers to new ones.
void ReplicaLeases::wait_index(Stream& stream, UndividedColumns const& batch, LeaseListItems& lists) {
  std::vector<kernels::ItemNumbers> numbers;
  std::vector<Array<std::uint32_t>> memory;
  std::vector<kernels::KeyIndex::Erasure> erasures;
  std::vector<kernels::GatherElements<Key>> gathers;
  std::vector<kernels::KeyIndex::Insertion> insertions;
  std::vector<Array<Key>> new_keys;
  std::uint32_t all_new = 0;
  for (std::uint32_t t = 0; t < tables_.size(); ++t) all_new += lists.size(lists.of.changed(t, LeaseLists::kNew));
  lists.new_ids_memory = Array<std::uint32_t>(device_, all_new);
  memory::fill_bytes(stream, lists.new_ids_memory.data(), 0xFF, lists.new_ids_memory.bytes());  // kNoRow
  std::size_t first_new = 0;
  for (std::uint32_t t = 0; t < tables_.size(); ++t) {
    auto const forgotten = lists.items_of(lists.of.changed(t, LeaseLists::kForgotten));
    if (!forgotten.empty()) {
      auto const& ids = memory.emplace_back(device_, forgotten.size());
      numbers.push_back({forgotten, lists.record_item(t), ids});
      erasures.push_back({&tables_[t].index, ids, true});
    }
    auto const fresh = lists.items_of(lists.of.changed(t, LeaseLists::kNew));
    lists.new_ids.push_back(
        lists.new_ids_memory.view().slice(std::exchange(first_new, first_new + fresh.size()), fresh.size()));
    if (fresh.empty()) continue;
    auto const& rows = memory.emplace_back(device_, fresh.size());
    numbers.push_back({fresh, static_cast<std::uint32_t>(lists.at.changes_at()), rows});
    gathers.push_back({batch.keys, rows, new_keys.emplace_back(device_, fresh.size())});
    insertions.push_back({.index = &tables_[t].index,
                          .keys = new_keys.back(),
                          .ids = lists.new_ids[t],
                          .missing = fresh.size(),
                          .distinct = true});
  }
  if (numbers.empty()) return;
  kernels::item_numbers(stream, numbers);
  if (!gathers.empty()) kernels::gather_elements(stream, gathers);
  kernels::KeyIndex::wait_erase_ids(stream, erasures);
  if (!insertions.empty()) kernels::KeyIndex::wait_insert(stream, insertions);
  for (auto& table : tables_) table.records.reserve(stream, table.index.ids_end());
}

// Decides which refreshed rows get leases, and begins these. Rows that had leases come first, and then those that were
// used recently, those that are due, by their keys, and the others.
void ReplicaLeases::grant(Stream& stream, UndividedColumns const& batch, LeaseListItems const& lists,
                          BatchDivision const& division, DividedRows& divided) {
  std::vector<kernels::BeginLeases::LeasesOfList> begun;
  std::vector<std::uint32_t> granted_of;
  std::deque<Array<std::uint32_t>> memory;
  std::deque<Array<Key>> keys_memory;
  std::vector<kernels::ItemNumbers> numbers;
  std::vector<kernels::GatherStored<std::uint64_t>> gathers;
  std::vector<kernels::SortedKeys> sorts;
  std::uint32_t all_granted = 0;
  for (std::uint32_t t = 0; t < tables_.size(); ++t) {
    auto& table = tables_[t];
    std::size_t const most = division.leases_max[t];
    auto const changed = [&](LeaseLists::LeaseChange change) { return lists.of.changed(t, change); };
    auto const due = lists.of.due(t, LeaseLists::kDueLeased, 0);
    for (auto const list : {changed(LeaseLists::kRenewed), changed(LeaseLists::kLost), changed(LeaseLists::kEnded)}) {
      table.leases -= lists.size(list);
    }
    table.leases -= lists.size(due, ranks_);
    std::uint32_t const before = all_granted;
    auto const grant = [&](std::uint32_t list, std::uint32_t count, std::size_t limit) {
      auto const items = lists.items_of(list, count);
      std::size_t const room = limit > table.leases ? limit - table.leases : 0;
      auto const granted = static_cast<std::uint32_t>(std::min(items.size(), room));
      table.leases += granted;
      all_granted += granted;
      granted_of.push_back(granted);
      begun.push_back({.records = table.records.ref(),
                       .items = items,
                       .places = batch.place_of_row,
                       .ids = batch.ids,
                       .first = static_cast<std::uint32_t>(lists.at.changes_at()),
                       .granted = granted});
    };
    grant(changed(LeaseLists::kRenewed), 2, most);
    grant(due, 2 * ranks_, most);
    auto& of_due = begun.back();
    of_due.places = lists.place_of_item.view().slice(lists.first[due], of_due.items.size());
    of_due.ids = {};
    of_due.first = lists.record_item(t);
    if (of_due.granted > 0 && of_due.granted < of_due.items.size()) {
      // The numbers of records depend on when steps were complete, and must not decide.
      std::size_t const n = of_due.items.size();
      auto const& ids = memory.emplace_back(device_, n);
      auto const& order = memory.emplace_back(device_, n);
      auto const &keys = keys_memory.emplace_back(device_, n), &sorted = keys_memory.emplace_back(device_, n);
      numbers.push_back({of_due.items, of_due.first, ids});
      gathers.push_back({table.index.keys(), ids, {reinterpret_cast<std::uint64_t*>(keys.data()), n, device_}});
      sorts.push_back({keys, sorted, order, 0});
      of_due.order = order;
    }
    grant(changed(LeaseLists::kReturned), 1, most / 4 * 3);
    grant(changed(LeaseLists::kNew), 1, most / 4 * 3);
    begun.back().ids = lists.new_ids[t];
    begun.back().is_new = true;
    divided.tables[t].begun = View<std::uint32_t const>{nullptr, all_granted - before, device_};
  }
  divided.begun = Array<std::uint32_t>(device_, all_granted);
  std::size_t at = 0;
  for (std::size_t i = 0; i < begun.size(); ++i) {
    begun[i].begun = divided.begun.view().slice(at, granted_of[i]);
    at += granted_of[i];
  }
  at = 0;
  for (auto& of_table : divided.tables) {
    std::size_t const size = of_table.begun.size();
    of_table.begun = divided.begun.view().slice(std::exchange(at, at + size), size);
  }
  if (!sorts.empty()) {
    kernels::item_numbers(stream, numbers);
    kernels::gather_stored(stream, gathers);
    kernels::sort_keys(stream, sorts);
  }
  kernels::begin_leases(stream, {begun, LeaseRecord::number_of(number(division.step)), staleness_});
}

// -- after a step --

void ReplicaLeases::count_applied(Stream& stream, std::span<AppliedRows const> lists, Clock step) {
  std::vector<kernels::AppliedUses> uses;
  for (auto const& [table, records, entries, items, first_item] : lists) {
    uses.push_back({tables_[number(table)].records.ref(), records, entries, items, first_item});
  }
  kernels::count_applied(stream, uses, LeaseRecord::number_of(number(step)));
}

void ReplicaLeases::select_leased(Stream& stream, std::span<KeyedRows const> lists, Clock step) {
  std::vector<KeysOfTable> keys;
  std::vector<View<std::uint32_t>> ids;
  std::vector<kernels::LeasedRows> rows;
  for (auto const& list : lists) {
    keys.push_back({list.table, list.keys});
    ids.push_back(list.pinned);  // for the numbers of records, and then for the rows
    rows.push_back({tables_[number(list.table)].records.const_ref(), list.pinned, list.rows, list.pinned});
  }
  find(stream, keys, ids);
  kernels::select_leased(stream, rows, LeaseRecord::number_of(number(step)));
}

void ReplicaLeases::retry(Stream& stream, std::span<KeysOfTable const> lists) {
  end(stream, lists, kernels::LeaseEnd::kRetry);
}

void ReplicaLeases::drop(Stream& stream, KeysOfTable const& list) { end(stream, {&list, 1}, kernels::LeaseEnd::kDrop); }

void ReplicaLeases::end(Stream& stream, std::span<KeysOfTable const> lists, kernels::LeaseEnd end) {
  std::vector<Array<std::uint32_t>> memory;
  std::vector<View<std::uint32_t>> ids;
  std::vector<kernels::EndLeases> ended;
  for (auto const& [table, keys] : lists) {
    auto const& of_list = memory.emplace_back(device_, keys.size());
    ids.push_back(of_list);
    ended.push_back({tables_[number(table)].records.ref(), of_list, static_cast<std::uint32_t>(keys.size())});
  }
  find(stream, lists, ids);
  kernels::end_leases(stream, ended, end);
}

void ReplicaLeases::clear(Stream& stream) {
  std::vector<kernels::EndLeases> ended;
  for (auto& table : tables_) {
    ended.push_back({table.records.ref(), {}, static_cast<std::uint32_t>(table.index.ids_end())});
    table.leases = 0;
  }
  kernels::end_leases(stream, ended, kernels::LeaseEnd::kClear);
}

}  // namespace gpups::cache
