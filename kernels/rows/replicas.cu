// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/replicas.hpp"

#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/runtime/compact.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

struct MarkReplicasOfAll {
  std::span<MarkReplicas const> lists;
};
struct CountReplicasOfAll {
  std::span<CountReplicas const> tables;
  View<std::uint32_t> counts;
};
// A table with its number.
struct CountedReplicas {
  CountReplicas of;
  std::size_t table;
};
struct TakeReplicasOfAll {
  std::span<TakeReplicas const> tables;
  View<std::uint32_t> counts;
};

template <Space S>
void run(Exec<S> ex, MarkReplicasOfAll const& all) {
  SegmentList const list(ex, std::vector(all.lists.begin(), all.lists.end()),
                         [](MarkReplicas const& m) { return m.ids.size(); });
  each_item(ex, list.segments(), [] GPUPS_FN(MarkReplicas const& m, std::size_t i) {
    if (m.ids[i] == kNoRow) return;
    auto& word = *m.uses.row(m.ids[i]);
    bool const is_later = word != kOwned && ((word - m.word) & (kReplicaBit - 1)) < kReplicaBit / 2;
    bool const stays = word == kOwned ? m.skip_owned : m.word != kOwned && is_later;
    if (!stays) word = m.word;
  });
}

template <Space S>
void run(Exec<S> ex, CountReplicasOfAll const& all) {
  GPUPS_ASSERT(all.counts.size() == kReplicaAges * all.tables.size());
  std::vector<CountedReplicas> tables;
  for (auto const& table : all.tables) tables.push_back({table, tables.size()});
  SegmentList const list(ex, std::move(tables), [](CountedReplicas const& t) { return t.of.rows; });
  each_item(ex, list.segments(), [counts = all.counts] GPUPS_FN(CountedReplicas const& t, std::size_t i) {
    std::uint32_t const word = *t.of.uses.row(static_cast<std::uint32_t>(i));
    if (!is_unused_replica(word, t.of.now, 0)) return;
    std::uint32_t const steps = (t.of.now - word) & (kReplicaBit - 1);
    std::size_t age = 0;
    while (age + 1 < kReplicaAges && least_steps(age + 1) <= steps) ++age;
    atomic_add(&counts[kReplicaAges * t.table + age], 1U);
  });
}

template <Space S>
void run(Exec<S> ex, TakeReplicasOfAll const& all) {
  std::vector<std::size_t> sizes;
  for (auto const& table : all.tables) {
    GPUPS_ASSERT(table.taken.size() >= table.rows);
    sizes.push_back(table.rows);
  }
  compact_lists(
      ex, all.tables, sizes, all.counts,
      [] GPUPS_FN(TakeReplicas const& t, std::size_t i) {
        return is_unused_replica(*t.uses.row(static_cast<std::uint32_t>(i)), t.now, t.age);
      },
      [] GPUPS_FN(TakeReplicas const& t, std::size_t i, std::uint32_t rank) {
        t.taken[rank] = static_cast<std::uint32_t>(i);
        *t.uses.row(static_cast<std::uint32_t>(i)) = kOwned;
      });
}

GPUPS_KERNEL(mark_replicas_of_all, MarkReplicasOfAll)
GPUPS_KERNEL(count_replicas_of_all, CountReplicasOfAll)
GPUPS_KERNEL(take_replicas_of_all, TakeReplicasOfAll)

#ifndef __CUDACC__
void mark_replicas(Stream& stream, std::span<MarkReplicas const> lists) { mark_replicas_of_all(stream, {lists}); }
void count_replicas(Stream& stream, std::span<CountReplicas const> tables, View<std::uint32_t> counts) {
  count_replicas_of_all(stream, {tables, counts});
}
void take_replicas(Stream& stream, std::span<TakeReplicas const> tables, View<std::uint32_t> counts) {
  take_replicas_of_all(stream, {tables, counts});
}
#endif

}  // namespace gpups::kernels
