// SPDX-License-Identifier: Apache-2.0
#include "kernels/placement/settle_leases.hpp"

#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/segments.hpp"
#ifdef __CUDACC__
#include <cub/device/device_scan.cuh>

#include "kernels/runtime/device_scratch.hpp"
#endif

namespace gpups::kernels {

struct NumberItems {
  std::span<ItemNumbers const> lists;
};

template <Space S>
void run(Exec<S> ex, NumberItems const& n) {
  SegmentList const lists(ex, std::vector<ItemNumbers>(n.lists.begin(), n.lists.end()),
                          [](ItemNumbers const& list) { return list.items.size(); });
  each_item(ex, lists.segments(), [] GPUPS_FN(ItemNumbers const& l, std::size_t i) { l.to[i] = l.items[i] - l.first; });
}

template <Space S>
void run(Exec<S> ex, AnnounceRows const& a) {
  SegmentList const lists(ex, std::vector<AnnounceRows::ListOfRows>(a.lists.begin(), a.lists.end()),
                          [](AnnounceRows::ListOfRows const& list) { return list.size; });
  each_item(ex, lists.segments(),
            [step = a.step, items = a.items, row_keys = a.row_keys, row_occurrences = a.row_occurrences, keys = a.keys,
             occurrences = a.occurrences, place_of_row = a.place_of_row,
             place_of_item = a.place_of_item] GPUPS_FN(AnnounceRows::ListOfRows const& l, std::size_t i) {
              std::size_t const to = l.to + i, at = l.items_at + i;
              std::uint32_t const item = items[at], place = static_cast<std::uint32_t>(to) - l.first_of_table;
              place_of_item[at] = place;
              if (!l.is_due) {
                keys[to] = row_keys[item];
                occurrences[to] = row_occurrences[item];
                place_of_row[item] = place;
                return;
              }
              std::uint32_t const id = item - l.first_record;
              std::uint64_t* const words = l.records.row(id);
              LeaseRecord record = LeaseRecord::read(words);
              keys[to] = Key{*l.index_keys.row(id)};
              occurrences[to] = l.is_earlier ? 0 : record.occurrences;
              if (l.is_earlier) {
                record.earlier_refresh = step;
                record.overdue = false;
                record.write(words);
              } else {
                record.refreshed_at(step).write(words);
              }
            });
}

template <Space S>
void run(Exec<S> ex, BeginLeases const& b) {
  SegmentList const lists(
      ex, std::vector<BeginLeases::LeasesOfList>(b.lists.begin(), b.lists.end()),
      [](BeginLeases::LeasesOfList const& list) { return list.is_new ? list.items.size() : list.granted; });
  each_item(ex, lists.segments(),
            [step = b.step, staleness = b.staleness] GPUPS_FN(BeginLeases::LeasesOfList const& l, std::size_t i) {
              std::size_t const at = l.order.empty() ? i : l.order[i];
              std::uint32_t const number = l.items[at] - l.first;
              std::uint32_t const id = l.is_new ? l.ids[at] : l.ids.empty() ? number : l.ids[number];
              std::uint64_t* const words = l.records.row(id);
              LeaseRecord record = l.is_new ? LeaseRecord{.refreshed = step} : LeaseRecord::read(words);
              if (i < l.granted) {
                record.leased = true;
                if (record.leased_until < step + staleness) record.leased_until = step + staleness;
                bool const is_record = !l.is_new && l.ids.empty();
                l.begun[i] = l.places[is_record ? at : number];
              }
              record.write(words);
            });
}

template <Space S>
void run(Exec<S> ex, DivideUses const& u) {
  SegmentList const parts(ex, std::vector<DivideUses::DividedUses>(u.parts.begin(), u.parts.end()),
                          [](DivideUses::DividedUses const& part) { return part.items.size(); });
  each_item(ex, parts.segments(),
            [first_of = u.first_of, place_of_row = u.place_of_row, ids = u.ids, occurrences = u.occurrences,
             row_keys = u.row_keys] GPUPS_FN(DivideUses::DividedUses const& p, std::size_t i) {
              std::uint32_t const row = p.items[i] - p.first_item;
              std::uint32_t const first = p.has_repeats ? first_of[row] : row;
              p.rows[i] = row - p.first_row;
              if (!p.places.empty()) {
                p.places[i] = place_of_row[first];
                return;
              }
              p.records[i] = ids[first];
              p.entries[i] = occurrences[row];
              p.keys[i] = row_keys[row];
            });
}

#ifdef __CUDACC__
inline void add_up(DeviceExec ex, RunningSums const& r) {
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  std::size_t const n = r.values.size();
  each(ex, 1, [sums = r.sums] GPUPS_FN(std::size_t) { sums[0] = 0; });
  if (n == 0) return;
  run_in_stream(ex, [&](void* memory, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(memory, bytes, r.values.data(), r.sums.data() + 1,
                                         static_cast<std::int64_t>(n), stream);
  });
}
#else
inline void add_up(HostExec, RunningSums const& r) {
  std::uint32_t sum = 0;
  r.sums[0] = 0;
  for (std::size_t i = 0; i < r.values.size(); ++i) r.sums[i + 1] = sum += r.values[i];
}
#endif

template <Space S>
void run(Exec<S> ex, RunningSums const& r) {
  GPUPS_ASSERT(r.sums.size() == r.values.size() + 1);
  add_up(ex, r);
}

template <Space S>
void run(Exec<S> ex, OwnedUses const& o) {
  each(ex, o.items.size(), [o] GPUPS_FN(std::size_t i) {
    std::uint32_t const item = o.items[i];
    o.owned_ids[i] = o.ids[item];
    o.owned_rows[i] = o.rows[item];
    o.owned_entries[i] = o.entries[item];
  });
}

struct CountApplied {
  std::span<AppliedUses const> lists;
  std::uint64_t step;
};

template <Space S>
void run(Exec<S> ex, CountApplied const& c) {
  SegmentList const lists(ex, std::vector<AppliedUses>(c.lists.begin(), c.lists.end()),
                          [](AppliedUses const& list) { return list.items.size(); });
  each_item(ex, lists.segments(), [step = c.step] GPUPS_FN(AppliedUses const& l, std::size_t i) {
    std::uint32_t const at = l.items[i] - l.first_item;
    std::uint64_t* const words = l.records.row(l.ids[at]);
    if (words[0] >= step) return;  // the use is of an earlier lease
    std::uint64_t before = atomic_load(words + kUsesOfLease);
    for (;;) {
      std::uint64_t after[kLeaseWords] = {words[0], words[1], words[2], words[3], before};
      LeaseRecord record = LeaseRecord::read(after);
      if (record.waiting_uses == 0) return;
      --record.waiting_uses;
      record.occurrences -= record.occurrences < l.entries[at] ? record.occurrences : l.entries[at];
      record.write(after);
      std::uint64_t const was = atomic_exchange_if(words + kUsesOfLease, before, after[kUsesOfLease]);
      if (was == before) return;
      before = was;
    }
  });
}

struct SelectLeased {
  std::span<LeasedRows const> lists;
  std::uint64_t step;
};

template <Space S>
void run(Exec<S> ex, SelectLeased const& s) {
  SegmentList const lists(ex, std::vector<LeasedRows>(s.lists.begin(), s.lists.end()),
                          [](LeasedRows const& list) { return list.ids.size(); });
  each_item(ex, lists.segments(), [step = s.step] GPUPS_FN(LeasedRows const& l, std::size_t i) {
    bool const leased = l.ids[i] != kNoRow && LeaseRecord::read(l.records.row(l.ids[i])).leased_until >= step;
    l.pinned[i] = leased ? l.rows[i] : kNoRow;
  });
}

struct EndAllLeases {
  std::span<EndLeases const> lists;
  LeaseEnd end;
};

template <Space S>
void run(Exec<S> ex, EndAllLeases const& e) {
  SegmentList const lists(ex, std::vector<EndLeases>(e.lists.begin(), e.lists.end()),
                          [](EndLeases const& list) { return list.size; });
  each_item(ex, lists.segments(), [end = e.end] GPUPS_FN(EndLeases const& l, std::size_t i) {
    std::uint32_t const id = l.ids.empty() ? static_cast<std::uint32_t>(i) : l.ids[i];
    if (id == kNoRow) return;
    std::uint64_t* const words = l.records.row(id);
    LeaseRecord record = LeaseRecord::read(words);
    if (!record.exists()) return;
    if (end == LeaseEnd::kRetry) {
      record.overdue = true;
    } else {
      bool const waits = end == LeaseEnd::kClear && record.waits();
      record = {.occurrences = waits ? record.occurrences : 0, .overdue = waits, .left = true};
    }
    record.write(words);
  });
}

GPUPS_KERNEL(number_items, NumberItems)
GPUPS_KERNEL(announce_rows, AnnounceRows)
GPUPS_KERNEL(begin_leases, BeginLeases)
GPUPS_KERNEL(divide_uses, DivideUses)
GPUPS_KERNEL(running_sums, RunningSums)
GPUPS_KERNEL(owned_uses, OwnedUses)
GPUPS_KERNEL(count_all_applied, CountApplied)
GPUPS_KERNEL(select_all_leased, SelectLeased)
GPUPS_KERNEL(end_all_leases, EndAllLeases)

#ifndef __CUDACC__
void item_numbers(Stream& stream, std::span<ItemNumbers const> lists) { number_items(stream, {lists}); }
void count_applied(Stream& stream, std::span<AppliedUses const> lists, std::uint64_t step) {
  count_all_applied(stream, {lists, step});
}
void select_leased(Stream& stream, std::span<LeasedRows const> lists, std::uint64_t step) {
  select_all_leased(stream, {lists, step});
}
void end_leases(Stream& stream, std::span<EndLeases const> lists, LeaseEnd end) {
  end_all_leases(stream, {lists, end});
}
#endif

}  // namespace gpups::kernels
