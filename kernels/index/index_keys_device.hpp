// SPDX-License-Identifier: Apache-2.0
// Finds and inserts keys on a GPU.
#pragma once

#include <bit>
#include <cub/device/device_scan.cuh>
#include <span>
#include <utility>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/index/index_keys.hpp"
#include "kernels/index/probe.hpp"
#include "kernels/runtime/device_scratch.hpp"
#include "kernels/runtime/read_back.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

// Finds keys in any number of indices on a GPU, by teams of four threads, in one launch.

struct SearchedIndex {
  KeysOfIndex index;
  std::uint32_t* missing;  // or null
};

inline void find_keys(DeviceExec ex, FindKeys const& f) {
  GPUPS_ASSERT(f.missing.empty() || f.missing.size() == f.indices.size());
  std::vector<SearchedIndex> searched;
  for (std::size_t k = 0; k < f.indices.size(); ++k) {
    searched.push_back({f.indices[k], f.missing.empty() ? nullptr : f.missing.data() + k});
  }
  // Each index has whole warps, so that all keys of a team belong to one index.
  SegmentList const list(ex, std::move(searched),
                         [](SearchedIndex const& s) { return (s.index.keys.size() + 31) / 32 * 32; });
  each_item(ex, list.segments(), [] GPUPS_FN(SearchedIndex const& s, std::size_t i) {
    bool const has = i < s.index.keys.size();
    std::uint32_t const id = probe(FourThreads{}, s.index.buckets, has ? s.index.keys[i] : Key{}, has);
    if (has) s.index.ids[i] = id;
    if (s.missing == nullptr) return;
    unsigned const missing = __ballot_sync(0xFFFFFFFF, has && id == kNoRow);
    if (missing != 0 && threadIdx.x % 32 == 0) atomic_add(s.missing, __popc(missing));
  });
}

// Inserts keys on a GPU, in any number of indices at once. First, equal absent keys of a batch are matched, in a hash
// table of their positions. The keys of a batch do not change, so threads with equal keys find the same slot without a
// lock, and the smallest position stays in it. So ids do not depend on the order of threads.

// The keys of one index.
struct InsertedKeys {
  InsertKeys f;
  std::uint32_t* slots;  // (mask + 1)
  std::uint64_t mask;
  std::size_t first;     // the number of the first key over all indices
  std::uint32_t number;  // of the index

  GPUPS_ANY_FN std::size_t size() const { return f.index.keys.size(); }
};

// Sets the id of an absent key to kNewKey + its slot.
__device__ inline void claim_slot(InsertedKeys const& k, std::size_t i) {
  KeysOfIndex const& f = k.f.index;
  if (f.ids[i] != kNoRow) return;
  auto const place = static_cast<std::uint32_t>(i);
  std::uint64_t at = hash_of(f.keys[i]) >> 32 & k.mask;
  for (;; at = (at + 1) & k.mask) {
    std::uint32_t seen = atomic_load(k.slots + at);
    if (seen == kNoRow) seen = atomic_exchange_if(k.slots + at, kNoRow, place);
    if (seen == kNoRow) break;
    if (f.keys[seen] != f.keys[i]) continue;
    if (place < seen) atomic_min(k.slots + at, place);
    break;
  }
  f.ids[i] = kNewKey | static_cast<std::uint32_t>(at);
}

// Inserts a new key, the r-th of its index, which is at position i.
__device__ inline void insert_new_key(InsertKeys const& f, std::size_t i, std::size_t r) {
  std::uint32_t const id = f.number_of_new(r);
  Key const key = f.index.keys[i];
  std::uint64_t const hash = hash_of(key);
  f.index.buckets.of(hash).insert(key, hash, id);
  f.index.ids[i] = f.new_ids[r] = id;
  *f.key_of_id.row(id) = number(key);
}

inline void insert_keys(DeviceExec ex, std::span<InsertKeys const> indices) {
  std::vector<InsertedKeys> all;
  std::size_t keys = 0, slots = 0;
  bool counted = true;  // the host knows the numbers of new keys
  for (InsertKeys const& f : indices) {
    counted = counted && f.distinct;
    *f.count = f.distinct ? f.new_ids.size() : 0;
    std::size_t const n = f.index.keys.size();
    if (n == 0) continue;
    std::size_t const table = std::bit_ceil(2 * n);
    all.push_back({f, nullptr, table - 1, keys, static_cast<std::uint32_t>(all.size())});
    keys += n;
    slots += table;
  }
  if (all.empty()) return;
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  StreamScratch const memory(ex, (slots + keys + 1 + all.size()) * sizeof(std::uint32_t));
  auto* const slot = static_cast<std::uint32_t*>(memory.data());
  auto* const rank = slot + slots;  // the number of new keys before each key
  auto* const counts = rank + keys + 1;
  check_cuda(cudaMemsetAsync(slot, 0xFF, slots * sizeof *slot, stream), "clearing a table of keys");
  check_cuda(cudaMemsetAsync(rank + keys, 0, sizeof *rank, stream), "clearing a count");
  std::uint32_t* next = slot;
  for (auto& k : all) {
    k.slots = next;
    next += k.mask + 1;
  }
  SegmentList const list(ex, all, [](InsertedKeys const& k) { return k.size(); });
  each_item(ex, list.segments(), [] GPUPS_FN(InsertedKeys const& k, std::size_t i) { claim_slot(k, i); });
  each_item(ex, list.segments(), [rank] GPUPS_FN(InsertedKeys const& k, std::size_t i) {
    std::uint32_t& id = k.f.index.ids[i];
    bool const is_absent = (id & kNewKey) != 0;
    std::uint32_t const first = is_absent ? k.slots[id & ~kNewKey] : 0;
    if (is_absent) id = kNewKey | first;
    rank[k.first + i] = is_absent && first == i ? 1 : 0;
  });
  run_in_stream(ex, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(scratch, bytes, rank, rank, static_cast<std::int64_t>(keys + 1), stream);
  });
  each_item(ex, list.segments(), [rank, counts] GPUPS_FN(InsertedKeys const& k, std::size_t i) {
    std::uint32_t const* const here = rank + k.first + i;
    std::uint32_t const before = here[0] - rank[k.first];
    if (here[1] != here[0]) insert_new_key(k.f, i, before);
    if (i + 1 == k.size()) counts[k.number] = here[1] - rank[k.first];
  });
  each_item(ex, list.segments(), [] GPUPS_FN(InsertedKeys const& k, std::size_t i) {
    std::uint32_t& id = k.f.index.ids[i];
    if ((id & kNewKey) != 0) id = k.f.index.ids[id & ~kNewKey];
  });
  if (counted) return;
  std::vector<std::uint32_t> read(all.size());
  copy_to_host(ex, read.data(), counts, read.size() * sizeof read[0], "reading counts");
  wait_for(ex, "waiting for new keys");
  for (std::size_t s = 0; s < all.size(); ++s) *all[s].f.count = read[s];
}

}  // namespace gpups::kernels
