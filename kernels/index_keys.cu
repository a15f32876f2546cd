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
    std::uint32_t const i = n.absent[r], id = n.new_ids[r];
    n.ids[i] = id;
    *n.key_of_id.row(id) = number(n.keys[i]);
    n.buckets.insert(n.keys[i], id);
  });
}

template <Space S>
void run(Exec<S> ex, MoveKeys const& m) {
  each(ex, m.from.mask + 1, [m] GPUPS_FN(std::size_t i) {
#ifndef __CUDACC__
    Bucket const& later = m.from.bucket[(i + 4) & m.from.mask];
    for (std::uint32_t k = 0; k < later.full(); ++k) {
      __builtin_prefetch(m.to.bucket + m.to.place(Key{later.key[k]}), 1);
    }
#endif
    Bucket const& bucket = m.from.bucket[i];
    for (std::uint32_t k = 0; k < bucket.full(); ++k) {
      bool const stays = m.keep.chunks == nullptr || *m.keep.row(bucket.id[k]) != 0;
      if (stays) m.to.insert(Key{bucket.key[k]}, bucket.id[k]);
    }
  });
}

GPUPS_KERNEL(find_keys, FindKeys)
GPUPS_KERNEL(wait_list_absent, ListAbsent)
GPUPS_KERNEL(insert_keys, InsertKeys)
GPUPS_KERNEL(move_keys, MoveKeys)

}  // namespace gpups::kernels
