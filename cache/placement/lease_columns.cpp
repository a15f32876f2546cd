// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/lease_columns.hpp"

#include <algorithm>
#include <numeric>

#include "kernels/base/check.hpp"
#include "kernels/index/sort_keys.hpp"
#include "kernels/placement/plan_leases.hpp"
#include "kernels/placement/settle_leases.hpp"

namespace gpups::cache {

using kernels::LeaseLists;

UndividedColumns join_parts(Stream& stream, std::span<UndividedPart const> parts, std::size_t tables) {
  Device const device = stream.device();
  UndividedColumns batch{.by_table = std::vector<std::size_t>(parts.size()),
                         .first_row = std::vector<std::uint32_t>(parts.size()),
                         .has_repeats = std::vector<bool>(tables)};
  std::iota(batch.by_table.begin(), batch.by_table.end(), std::size_t{0});
  std::stable_sort(batch.by_table.begin(), batch.by_table.end(),
                   [&](std::size_t a, std::size_t b) { return parts[a].table < parts[b].table; });
  std::vector<View<Key const>> keys;
  std::vector<std::uint32_t> rows_before(tables + 1), parts_of(tables);
  for (std::size_t const p : batch.by_table) {
    auto const table = number(parts[p].table);
    batch.first_row[p] = batch.rows;
    batch.rows += static_cast<std::uint32_t>(parts[p].keys.size());
    batch.has_repeats[table] = ++parts_of[table] > 1;
    keys.push_back(parts[p].keys);
  }
  auto const words = [&] { return Array<std::uint32_t>(device, batch.rows); };
  batch.keys = Array<Key>(device, batch.rows);
  batch.ids = words(), batch.first_of = words(), batch.occurrences = words(), batch.place_of_row = words();
  kernels::concatenate_keys(stream, keys, batch.keys);
  if (std::find(batch.has_repeats.begin(), batch.has_repeats.end(), true) == batch.has_repeats.end()) return batch;
  Array<Key> const sorted(device, batch.rows);
  auto const positions = words();
  std::vector<kernels::SortedKeys> sorts;
  std::vector<kernels::FirstRows::SortedRows> runs;
  for (std::size_t i = 0; i < batch.by_table.size();) {
    auto const table = parts[batch.by_table[i]].table;
    std::uint32_t const first = batch.first_row[batch.by_table[i]];
    std::size_t size = 0;
    for (; i < batch.by_table.size() && parts[batch.by_table[i]].table == table; ++i) {
      size += parts[batch.by_table[i]].keys.size();
    }
    if (!batch.has_repeats[number(table)]) continue;
    auto const of_table = [&](auto const& column) { return column.view().slice(first, size); };
    sorts.push_back({of_table(batch.keys), of_table(sorted), of_table(positions), first});
    runs.push_back({of_table(sorted), of_table(positions)});
  }
  kernels::sort_keys(stream, sorts);
  kernels::first_rows(stream, {runs, batch.first_of});
  return batch;
}

void list_announced(Stream& stream, std::span<LeasedTable const> tables, UndividedColumns const& batch,
                    LeaseListItems& lists, std::uint64_t step, std::uint32_t me, DividedRows& divided) {
  Device const device = stream.device();
  std::vector<kernels::AnnounceRows::ListOfRows> announced;
  std::uint32_t rows = 0;
  for (std::uint32_t t = 0; t < tables.size(); ++t) {
    auto& of_table = divided.tables.emplace_back(DividedRows::OfTable{rows, {0}, {}});
    auto const add = [&](std::uint32_t list, bool is_due, bool is_earlier) {
      std::uint32_t const size = lists.size(list);
      if (size == 0) return size;
      announced.push_back({.items_at = lists.first[list],
                           .size = size,
                           .to = rows,
                           .first_of_table = of_table.first,
                           .is_due = is_due,
                           .is_earlier = is_earlier,
                           .first_record = lists.record_item(t),
                           .records = tables[t].records.ref(),
                           .index_keys = tables[t].index.keys()});
      rows += size;
      return size;
    };
    for (std::uint32_t q = 0; q < lists.of.ranks; ++q) {
      add(lists.of.announced(t, q), false, false);
      for (std::uint32_t kind = 0; kind < LeaseLists::kDueKinds; ++kind) {
        std::uint32_t const due = add(lists.of.due(t, kind, q), true, kind == LeaseLists::kDueEarlier);
        divided.due_elsewhere += q == me ? 0 : due;
      }
      of_table.homes.push_back(rows - of_table.first);
    }
  }
  divided.keys = Array<Key>(device, rows);
  divided.offsets = Array<std::uint32_t>(device, rows + 1);
  Array<std::uint32_t> const occurrences(device, rows);
  lists.place_of_item = Array<std::uint32_t>(device, rows);
  kernels::announce_rows(stream, {.lists = announced,
                                  .step = step,
                                  .items = lists.items,
                                  .row_keys = batch.keys,
                                  .row_occurrences = batch.occurrences,
                                  .keys = divided.keys,
                                  .occurrences = occurrences,
                                  .place_of_row = batch.place_of_row,
                                  .place_of_item = lists.place_of_item});
  kernels::running_sums(stream, {occurrences, divided.offsets});
}

void list_uses(Stream& stream, std::span<UndividedPart const> parts, UndividedColumns const& batch,
               LeaseListItems const& lists, DividedRows& divided) {
  Device const device = stream.device();
  divided.parts.resize(parts.size());
  std::size_t refreshed = 0, leased = 0;
  for (std::uint32_t p = 0; p < parts.size(); ++p) {
    refreshed += lists.size(lists.of.used(p, LeaseLists::kRefreshed));
    leased += lists.size(lists.of.used(p, LeaseLists::kLeasedAtHome), 2);
  }
  GPUPS_ASSERT(refreshed + leased == batch.rows);
  divided.rows = Array<std::uint32_t>(device, refreshed + leased);
  divided.announced = Array<std::uint32_t>(device, refreshed);
  divided.leased_records = Array<std::uint32_t>(device, leased);
  divided.leased_entries = Array<std::uint32_t>(device, leased);
  divided.leased_keys = Array<Key>(device, leased);
  std::vector<kernels::DivideUses::DividedUses> uses;
  std::uint32_t at = 0, at_leased = 0;
  for (std::size_t const p : batch.by_table) {
    auto const part = static_cast<std::uint32_t>(p);
    auto const announced = lists.items_of(lists.of.used(part, LeaseLists::kRefreshed));
    auto const kept = lists.items_of(lists.of.used(part, LeaseLists::kLeasedAtHome), 2);
    auto const next = [](auto const& column, std::size_t first, std::size_t n) {
      return column.view().slice(first, n);
    };
    kernels::DivideUses::DividedUses use{.items = announced,
                                         .first_item = static_cast<std::uint32_t>(lists.at.uses_at()),
                                         .first_row = batch.first_row[p],
                                         .has_repeats = batch.has_repeats[number(parts[p].table)],
                                         .rows = next(divided.rows, at, announced.size()),
                                         .places = next(divided.announced, at, announced.size())};
    auto& of_part = divided.parts[p];
    of_part.whole_rows = use.rows, of_part.announced_rows = use.places;
    at += static_cast<std::uint32_t>(announced.size());
    if (!announced.empty()) uses.push_back(use);
    of_part.first = at_leased;
    of_part.leased_elsewhere = lists.size(lists.of.used(part, LeaseLists::kLeased));
    use.items = kept;
    use.rows = next(divided.rows, refreshed + at_leased, kept.size());
    use.places = {};
    use.records = next(divided.leased_records, at_leased, kept.size());
    use.entries = next(divided.leased_entries, at_leased, kept.size());
    use.keys = next(divided.leased_keys, at_leased, kept.size());
    of_part.leased_rows = use.rows, of_part.records = use.records, of_part.entries = use.entries;
    of_part.leased_keys = use.keys;
    at_leased += static_cast<std::uint32_t>(kept.size());
    if (!kept.empty()) uses.push_back(use);
  }
  kernels::divide_uses(stream, {uses, batch.first_of, batch.place_of_row, batch.ids, batch.occurrences, batch.keys});
}

}  // namespace gpups::cache
