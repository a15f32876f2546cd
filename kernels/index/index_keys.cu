// SPDX-License-Identifier: Apache-2.0
#include "kernels/index/index_keys.hpp"

#include <vector>

#include "kernels/runtime/segments.hpp"
#ifdef __CUDACC__
#include "kernels/index/index_keys_device.hpp"
#else
#include "kernels/index/index_keys_host.hpp"
#endif

namespace gpups::kernels {
#ifndef __CUDACC__
// The distance, in keys, at which a host thread prefetches buckets. A GPU hides their latency with other threads.
static constexpr std::size_t kBucketsAhead = 16;
#endif

template <Space S>
void run(Exec<S> ex, FindKeys const& f) {
  find_keys(ex, f);
}

struct InsertKeysOfAll {
  std::span<InsertKeys const> indices;
};

template <Space S>
void run(Exec<S> ex, InsertKeysOfAll const& all) {
  insert_keys(ex, all.indices);
}

struct EraseKeysOfAll {
  std::span<EraseKeys const> indices;
};

template <Space S>
void run(Exec<S> ex, EraseKeysOfAll const& all) {
  SegmentList const list(ex, std::vector(all.indices.begin(), all.indices.end()),
                         [](EraseKeys const& e) { return e.ids.size(); });
  each_item(ex, list.segments(), [] GPUPS_FN(EraseKeys const& e, std::size_t i) {
#ifndef __CUDACC__
    if (i + kBucketsAhead < e.ids.size() && e.ids[i + kBucketsAhead] != kNoRow) {
      __builtin_prefetch(e.buckets.first(hash_of(Key{*e.key_of_id.row(e.ids[i + kBucketsAhead])})), 1);
    }
#endif
    e.erased[i] = Key{kNoRow};
    if (e.ids[i] == kNoRow) return;
    Key const key{*e.key_of_id.row(e.ids[i])};
    std::uint64_t const hash = hash_of(key);
    if (e.buckets.of(hash).erase(key, hash, e.ids[i])) e.erased[i] = Key{e.ids[i]};
  });
}

// Returns the number of elements below `bound`. all: ascending.
template <class T>
GPUPS_FN std::size_t count_below(View<T const> all, T bound) {
  std::size_t low = 0;
  for (std::size_t high = all.size(); low < high;) {
    std::size_t const middle = low + (high - low) / 2;
    all[middle] < bound ? void(low = middle + 1) : void(high = middle);
  }
  return low;
}

struct MergeFreeOfAll {
  std::span<MergeFree const> indices;
};

template <Space S>
void run(Exec<S> ex, MergeFreeOfAll const& all) {
  SegmentList const list(ex, std::vector(all.indices.begin(), all.indices.end()),
                         [](MergeFree const& m) { return m.free.size() + m.erased.size(); });
  each_item(ex, list.segments(), [] GPUPS_FN(MergeFree const& m, std::size_t i) {
    if (i == 0) *m.count = static_cast<std::uint32_t>(count_below(m.erased, Key{kNoRow}));
    if (i < m.free.size()) {
      m.merged[i + count_below(m.erased, Key{m.free[i]})] = m.free[i];
      return;
    }
    std::size_t const e = i - m.free.size();
    auto const id = static_cast<std::uint32_t>(number(m.erased[e]));
    if (id != kNoRow) m.merged[e + count_below(m.free, id)] = id;
  });
}

template <Space S>
void run(Exec<S> ex, ListUsed const& l) {
  each(ex, l.end, [l] GPUPS_FN(std::size_t i) {
    auto const id = static_cast<std::uint32_t>(i);
    std::size_t const below = count_below(l.free, id);
    if (below == l.free.size() || l.free[below] != id) l.used[i - below] = id;
  });
}

template <Space S>
void run(Exec<S> ex, ClearBuckets const& c) {
  each(ex, c.last - c.first, [c] GPUPS_FN(std::size_t i) { c.buckets.bucket[c.first + i].marks = 0; });
}

template <Space S>
void run(Exec<S> ex, MoveKeys const& m) {
  each(ex, m.last - m.first, [m] GPUPS_FN(std::size_t i) {
    std::uint32_t const home = m.first + static_cast<std::uint32_t>(i);
    std::uint32_t at = home;
    for (std::uint32_t steps = 0; steps < m.from.size; ++steps, at = m.from.next(at)) {
      Bucket const& b = m.from.bucket[at];
      std::uint32_t const marks = b.marks;
      for (std::uint32_t left = marks & kAllPlaces; left != 0; left &= left - 1) {
        unsigned const k = lowest_bit(left);
        std::uint64_t const hash = hash_of(Key{b.key[k]});
        if (m.from.place(hash) == home) m.to.insert(Key{b.key[k]}, hash, b.id[k]);
      }
      if (marks >> kBucketKeys == 0) break;  // no key has passed this bucket
    }
  });
}

GPUPS_KERNEL(find_keys, FindKeys)
GPUPS_KERNEL(wait_insert_keys_of_all, InsertKeysOfAll)
GPUPS_KERNEL(erase_keys_of_all, EraseKeysOfAll)
GPUPS_KERNEL(merge_free_of_all, MergeFreeOfAll)
GPUPS_KERNEL(list_used, ListUsed)
GPUPS_KERNEL(clear_buckets, ClearBuckets)
GPUPS_KERNEL(move_keys, MoveKeys)

#ifndef __CUDACC__
void wait_insert_keys(Stream& stream, std::span<InsertKeys const> indices) {
  if (!indices.empty()) wait_insert_keys_of_all(stream, {indices});
}
void erase_keys(Stream& stream, std::span<EraseKeys const> indices) { erase_keys_of_all(stream, {indices}); }
void merge_free(Stream& stream, std::span<MergeFree const> indices) { merge_free_of_all(stream, {indices}); }
#endif

}  // namespace gpups::kernels
