// SPDX-License-Identifier: Apache-2.0
#include "kernels/index_keys.hpp"

#include "kernels/compact.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

#ifdef __CUDACC__
template <Space S>
void run(Exec<S> ex, FindKeys const& f) {
  each(ex, f.keys.size(),
       [f] GPUPS_FN(std::size_t i) { f.ids[i] = f.buckets.find(f.keys[i], f.buckets.place(f.keys[i])); });
}
#else
// Groups of keys are hashed and their buckets prefetched one group ahead of the search.
template <Space S>
void run(Exec<S> ex, FindKeys const& f) {
  constexpr std::size_t kGroup = 32;
  constexpr std::size_t kBlock = kGroup * 128;
  std::size_t const n = f.keys.size();
  ex.arena->blocks((n + kBlock - 1) / kBlock, [&](std::size_t block) {
    std::size_t const last = (block + 1) * kBlock < n ? (block + 1) * kBlock : n;
    std::uint64_t place[2][kGroup];
    auto const prefetch = [&](std::size_t first, std::uint64_t* to) {
      std::size_t const count = first < last ? std::min(kGroup, last - first) : 0;
      for (std::size_t k = 0; k < count; ++k) to[k] = f.buckets.place(f.keys[first + k]);
      for (std::size_t k = 0; k < count; ++k) __builtin_prefetch(f.buckets.bucket + to[k]);
    };
    std::size_t first = block * kBlock;
    prefetch(first, place[0]);
    for (unsigned turn = 0; first < last; first += kGroup, turn ^= 1U) {
      prefetch(first + kGroup, place[turn ^ 1U]);
      std::size_t const count = std::min(kGroup, last - first);
      for (std::size_t k = 0; k < count; ++k) f.ids[first + k] = f.buckets.find(f.keys[first + k], place[turn][k]);
    }
  });
}
#endif

template <Space S>
void run(Exec<S> ex, ListAbsent const& l) {
  View<std::uint32_t const> const ids = l.ids;
  View<std::uint32_t> const absent = l.absent;
  *l.count = wait_compact(
      ex, ids.device(), ids.size(), [ids] GPUPS_FN(std::size_t i) { return ids[i] == kNoRow; },
      [absent] GPUPS_FN(std::size_t i, std::uint32_t rank) { absent[rank] = static_cast<std::uint32_t>(i); });
}

template <Space S>
void run(Exec<S> ex, InsertKeys const& n) {
  each(ex, n.absent.size(), [n] GPUPS_FN(std::size_t r) {
#ifndef __CUDACC__
    if (r + 16 < n.absent.size()) {
      __builtin_prefetch(n.buckets.bucket + n.buckets.place(n.keys[n.absent[r + 16]]), 1);
    }
#endif
    std::uint32_t const i = n.absent[r], id = n.first_id + static_cast<std::uint32_t>(r);
    n.ids[i] = id;
    *n.key_of_id.row(id) = number(n.keys[i]);
    n.buckets.insert(n.keys[i], id);
  });
}

template <Space S>
void run(Exec<S> ex, RebuildIndex const& b) {
  each(ex, b.count, [b] GPUPS_FN(std::size_t i) {
#ifndef __CUDACC__
    if (i + 16 < b.count) {
      Key const later{*b.key_of_id.row(static_cast<std::uint32_t>(i + 16))};
      __builtin_prefetch(b.buckets.bucket + b.buckets.place(later), 1);
    }
#endif
    auto const id = static_cast<std::uint32_t>(i);
    b.buckets.insert(Key{*b.key_of_id.row(id)}, id);
  });
}

GPUPS_KERNEL(find_keys, FindKeys)
GPUPS_KERNEL(wait_list_absent, ListAbsent)
GPUPS_KERNEL(insert_keys, InsertKeys)
GPUPS_KERNEL(rebuild_index, RebuildIndex)

}  // namespace gpups::kernels
