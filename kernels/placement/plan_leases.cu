// SPDX-License-Identifier: Apache-2.0
#include "kernels/placement/plan_leases.hpp"

#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/placement/partition.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, FirstRows const& f) {
  SegmentList const tables(ex, std::vector<FirstRows::SortedRows>(f.tables.begin(), f.tables.end()),
                           [](FirstRows::SortedRows const& table) { return table.keys.size(); });
  each_item(ex, tables.segments(), [first_of = f.first_of] GPUPS_FN(FirstRows::SortedRows const& t, std::size_t i) {
    std::size_t head = i;
    while (head > 0 && t.keys[head - 1] == t.keys[i]) --head;
    first_of[t.positions[i]] = t.positions[head];
  });
}

// The body of PlanLeases. Repeated rows follow when the first rows are planned.
struct PlannedUses {
  LeaseLists lists;
  LeaseItems items;
  LeaseSteps steps;
  std::uint32_t const* ids;
  std::uint32_t const* first_of;
  std::uint32_t* occurrences;
  std::uint32_t* list_of;
  std::uint64_t* ages;
  std::uint32_t* least_left;

  GPUPS_FN void count_age(std::uint32_t row, std::uint64_t refreshed) const {
    std::uint64_t const age = steps.step - refreshed;
    atomic_add(ages + row % kAgeSums, age);
    std::uint32_t const left = ~static_cast<std::uint32_t>(age);
    if (atomic_load(least_left) > left) atomic_min(least_left, left);
  }
  GPUPS_FN void put(RowsOfHome const& home, std::uint32_t row, bool leased, std::uint32_t change) const {
    std::uint32_t const use = !leased        ? LeaseLists::kRefreshed
                              : home.is_mine ? LeaseLists::kLeasedAtHome
                                             : LeaseLists::kLeased;
    list_of[row] = leased ? kNoList : lists.announced(home.table, home.home);
    list_of[items.uses_at() + row] = lists.used(home.part, use);
    list_of[items.changes_at() + row] = change == LeaseLists::kChanges ? kNoList : lists.changed(home.table, change);
  }
  GPUPS_FN void plan(RowsOfHome const& home, std::size_t i) const {
    auto const row = home.first + static_cast<std::uint32_t>(i);
    occurrences[row] = home.offsets.empty() ? 0 : home.offsets[i + 1] - home.offsets[i];
    if (home.has_repeats && first_of[row] != row) return;
    std::uint32_t const id = home.may_lease ? ids[row] : kNoRow;
    bool const stays = !home.may_lease || (!home.owners.empty() && home.owners[i] == home.home);
    if (id == kNoRow) return put(home, row, false, stays ? LeaseLists::kChanges : LeaseLists::kNew);
    std::uint64_t* const words = home.records.row(id);
    LeaseRecord record = LeaseRecord::read(words);
    if (!steps.refresh_all && record.is_leased_at(steps.step, steps.staleness)) {
      ++record.waiting_uses;
      if (record.latest_use < steps.step) record.latest_use = steps.step;
      record.occurrences += occurrences[row];
      record.write(words);
      count_age(row, record.refreshed);
      return put(home, row, true, LeaseLists::kChanges);
    }
    if (record.is_known() && record.refreshed > steps.step) {
      record.earlier_refresh = steps.step;
      record.overdue = false;
      record.write(words);
      return put(home, row, false, LeaseLists::kChanges);
    }
    occurrences[row] += record.occurrences;
    record.refreshed_at(steps.step).write(words);
    if (stays) return put(home, row, false, record.leased ? LeaseLists::kLost : LeaseLists::kChanges);
    put(home, row, false,
        record.leased       ? LeaseLists::kRenewed
        : record.is_known() ? LeaseLists::kKnown
                            : LeaseLists::kReturned);
  }
  // Plans a row like the first one with its key.
  GPUPS_FN void repeat(RowsOfHome const& home, std::size_t i) const {
    auto const row = home.first + static_cast<std::uint32_t>(i);
    if (!home.has_repeats || first_of[row] == row) return;
    std::uint32_t const first = first_of[row];
    bool const leased = list_of[first] == kNoList;
    if (leased) {
      std::uint64_t* const words = home.records.row(ids[first]);
      atomic_add(words + kUsesOfLease, LeaseRecord::packed_uses(1, occurrences[row]));
      count_age(row, words[0]);
    } else {
      atomic_add(occurrences + first, occurrences[row]);
    }
    put(home, row, leased, LeaseLists::kChanges);
    list_of[row] = kNoList;
  }
};

template <Space S>
void run(Exec<S> ex, PlanLeases const& p) {
  GPUPS_ASSERT(p.ids.size() == p.items.rows && p.occurrences.size() == p.items.rows);
  GPUPS_ASSERT(p.list_of.size() == p.items.count() && p.ages.size() == kAgeSums && p.least_left.size() == 1);
  PlannedUses const plan{p.lists,          p.items,           p.steps,
                         p.ids.data(),     p.first_of.data(), p.occurrences.data(),
                         p.list_of.data(), p.ages.data(),     p.least_left.data()};
  bool has_repeats = false;
  for (auto const& home : p.homes) has_repeats = has_repeats || home.has_repeats;
  SegmentList const homes(ex, std::vector<RowsOfHome>(p.homes.begin(), p.homes.end()),
                          [](RowsOfHome const& home) { return home.size; });
  each_item(ex, homes.segments(), [plan] GPUPS_FN(RowsOfHome const& home, std::size_t i) { plan.plan(home, i); });
  if (!has_repeats) return;
  each_item(ex, homes.segments(), [plan] GPUPS_FN(RowsOfHome const& home, std::size_t i) { plan.repeat(home, i); });
}

// The records of a table, with the number of the first one.
struct ScannedRecords {
  ListDue::RecordsOfTable of;
  std::size_t first;
};

// Returns the list of a record, and changes it if it ends without being due.
GPUPS_FN inline std::uint32_t list_of_record(ScannedRecords const& t, std::uint32_t id, LeaseLists const& lists,
                                             LeaseSteps const& at) {
  std::uint64_t* const words = t.of.records.row(id);
  LeaseRecord record = LeaseRecord::read(words);
  if (!record.exists()) return kNoList;
  bool const ends = record.is_known() && record.refreshed + at.staleness < at.step;
  if (record.overdue || (record.waiting_uses > 0 && (ends || at.send_all))) {
    if (record.refreshed == at.step || record.earlier_refresh == at.step) return kNoList;
    std::uint32_t const kind = record.is_known() && record.refreshed > at.step ? LeaseLists::kDueEarlier
                               : record.leased                                 ? LeaseLists::kDueLeased
                                                                               : LeaseLists::kDueKnown;
    return lists.due(t.of.table, kind, home_of(Key{*t.of.keys.row(id)}, lists.ranks));
  }
  if (ends && record.waiting_uses == 0) {
    bool const leased = record.leased;
    record.leased = false;
    record.left = true;
    record.write(words);
    return leased ? lists.changed(t.of.table, LeaseLists::kEnded) : kNoList;
  }
  if (record.left && record.refreshed <= at.complete && record.leased_until <= at.complete) {
    LeaseRecord{}.write(words);
    return lists.changed(t.of.table, LeaseLists::kForgotten);
  }
  return kNoList;
}

template <Space S>
void run(Exec<S> ex, ListDue const& l) {
  std::vector<ScannedRecords> tables;
  std::size_t first = 0;
  for (auto const& table : l.tables) {
    tables.push_back({table, first});
    first += table.size;
  }
  GPUPS_ASSERT(l.list_of.size() == first);
  SegmentList const all(ex, std::move(tables), [](ScannedRecords const& table) { return table.of.size; });
  each_item(ex, all.segments(),
            [lists = l.lists, steps = l.steps, list_of = l.list_of] GPUPS_FN(ScannedRecords const& t, std::size_t i) {
              list_of[t.first + i] = list_of_record(t, static_cast<std::uint32_t>(i), lists, steps);
            });
}

GPUPS_KERNEL(first_rows, FirstRows)
GPUPS_KERNEL(plan_leases, PlanLeases)
GPUPS_KERNEL(list_due, ListDue)

}  // namespace gpups::kernels
