// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum/waiting_sums.hpp"

#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/codec/units.hpp"
#include "kernels/placement/partition.hpp"
#include "kernels/rows/replicas.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

// A list with the number of its first item.
struct WaitingItems {
  ListWaiting::ItemsOfList of;
  std::size_t first;
};

template <Space S>
void run(Exec<S> ex, ListWaiting const& l) {
  std::vector<WaitingItems> lists;
  std::size_t items = 0;
  for (auto const& list : l.lists) {
    lists.push_back({list, items});
    items += list.size;
  }
  GPUPS_ASSERT(l.slots.size() == items && l.list_of.size() == items);
  SegmentList const all(ex, std::move(lists), [](WaitingItems const& list) { return list.of.size; });
  each_item(ex, all.segments(),
            [parts = l.parts, slots = l.slots, uses = l.uses, list_of = l.list_of] GPUPS_FN(WaitingItems const& list,
                                                                                            std::size_t i) {
              std::size_t const item = list.first + i;
              std::uint32_t const number = list.of.number;
              bool const has_slot = slots[item] != kNoRow;
              if (list.of.announced) {
                list_of[item] = has_slot ? ListWaiting::taken(parts, number) : kNoList;
              } else if (uses[item] == kOwned) {
                list_of[item] = ListWaiting::owned(number);
              } else {
                list_of[item] = has_slot ? ListWaiting::known(parts, number) : ListWaiting::fresh(parts, number);
              }
            });
}

struct MergeAllWaiting {
  std::span<MergeWaiting const> lists;
};

template <Space S>
void run(Exec<S> ex, MergeAllWaiting const& m) {
  SegmentList const lists(ex, std::vector<MergeWaiting>(m.lists.begin(), m.lists.end()),
                          [](MergeWaiting const& list) { return list.slots.size(); });
  each_row_item(ex, lists.segments(), [] GPUPS_FN(MergeWaiting const& l, std::size_t i, NativeLanes lanes) {
    if (l.slots[i] == kNoRow) return;
    std::int64_t const* const from = l.from.sums.row(l.slots[i]);
    std::int64_t* const to = l.into.row(i);
    std::uint64_t const overflows = lanes.sum_words(l.into.stride(), [=](std::size_t j) {
      auto const a = static_cast<std::uint64_t>(to[j]), b = static_cast<std::uint64_t>(from[j]), sum = a + b;
      to[j] = static_cast<std::int64_t>(sum);
      return ((sum ^ a) & (sum ^ b)) >> 63;
    });
    if (overflows > 0 && lanes.first()) atomic_min(l.bad_row.data(), static_cast<std::uint32_t>(i));
  });
}

struct AddAllWaiting {
  std::span<AddWaiting const> lists;
  std::uint32_t now;
};

template <Space S>
void run(Exec<S> ex, AddAllWaiting const& a) {
  SegmentList const lists(ex, std::vector<AddWaiting>(a.lists.begin(), a.lists.end()),
                          [](AddWaiting const& list) { return list.items.size(); });
  each_row_item(ex, lists.segments(), [now = a.now] GPUPS_FN(AddWaiting const& l, std::size_t i, NativeLanes lanes) {
    std::uint32_t const item = l.items[i], slot = l.slots[l.slots_by_item ? item : i];
    std::int64_t const* const from = l.sums.row(l.rows[item]);
    std::int64_t* const to = l.to.sums.row(slot);
    std::uint64_t const bad = lanes.sum_words(l.sums.stride(), [=](std::size_t j) {
      std::uint64_t exceeds = 0;
      to[j] = add_units(to[j], from[j], exceeds);
      return exceeds >> 63;
    });
    if (!lanes.first()) return;
    if (bad > 0) atomic_min(l.bad_item.data(), item);
    std::uint32_t* const marks = l.to.marks.row(slot);
    if (marks[kOldest] == 0) marks[kOldest] = now;
    marks[kLastUse] = now;
  });
}

struct ClearAllWaiting {
  std::span<ClearWaiting const> lists;
};

template <Space S>
void run(Exec<S> ex, ClearAllWaiting const& c) {
  SegmentList const lists(ex, std::vector<ClearWaiting>(c.lists.begin(), c.lists.end()), [](ClearWaiting const& list) {
    return list.items.empty() ? list.slots.size() : list.items.size();
  });
  each_row_item(ex, lists.segments(), [] GPUPS_FN(ClearWaiting const& l, std::size_t i, NativeLanes lanes) {
    std::uint32_t const slot = l.slots[l.items.empty() ? i : l.items[i] - l.first_item];
    if (slot == kNoRow) return;
    std::int64_t* const sums = l.from.sums.row(slot);
    lanes.each(l.from.sums.stride, [=](std::size_t j) { sums[j] = 0; });
    if (!lanes.first()) return;
    std::uint32_t* const marks = l.from.marks.row(slot);
    marks[kOldest] = marks[kLastUse] = 0;
    if (!l.cleared.empty()) l.cleared[i] = slot;
  });
}

GPUPS_KERNEL(list_waiting, ListWaiting)
GPUPS_KERNEL(merge_all_waiting, MergeAllWaiting)
GPUPS_KERNEL(add_all_waiting, AddAllWaiting)
GPUPS_KERNEL(clear_all_waiting, ClearAllWaiting)

#ifndef __CUDACC__
void merge_waiting(Stream& stream, std::span<MergeWaiting const> lists) { merge_all_waiting(stream, {lists}); }
void add_waiting(Stream& stream, std::span<AddWaiting const> lists, std::uint32_t now) {
  add_all_waiting(stream, {lists, now});
}
void clear_waiting(Stream& stream, std::span<ClearWaiting const> lists) { clear_all_waiting(stream, {lists}); }
#endif

}  // namespace gpups::kernels
