// SPDX-License-Identifier: Apache-2.0
// The first entry that has the key of each entry, on a GPU: a hash table whose slots are the numbers of entries, so
// that the keys themselves stay where they are.
#pragma once

#include <bit>

#include "kernels/device_scratch.hpp"
#include "kernels/hash.hpp"
#include "kernels/launch.hpp"
#include "kernels/row_storage.hpp"
#include "kernels/unique_keys.hpp"

namespace gpups::kernels {

// A part with entries, as kernels see it.
struct DevicePart {
  Key const* keys;
  Key* unique;
  std::uint32_t *positions, *offsets, *order;
  std::uint32_t first, last;  // its entries, numbered through all parts
};

struct DeviceParts {
  DevicePart const* list;
  std::uint32_t count;
  std::size_t entries;

  GPUPS_FN std::uint32_t part_of(std::size_t entry) const {
    std::uint32_t low = 0, high = count - 1;
    while (low < high) {
      std::uint32_t const middle = (low + high) / 2;
      list[middle].last <= entry ? low = middle + 1 : high = middle;
    }
    return low;
  }
  GPUPS_FN Key key(std::uint32_t part, std::size_t entry) const { return list[part].keys[entry - list[part].first]; }
};

// The slot of this key, which then has the number of an entry with it, `entry` or a smaller one.
//
// A slot that is not free keeps its key. Slots are read from the cache that atomic operations act on: a stale "free"
// would send all who use a frequent key through the same operation, one after the other.
GPUPS_FN inline std::uint32_t claim_slot(DeviceParts const& parts, std::uint32_t part, std::uint32_t entry, Key key,
                                         std::uint32_t* slots, std::uint32_t mask) {
  DevicePart const& mine = parts.list[part];
  for (auto at = static_cast<std::uint32_t>(hash_of(key) + part * 0x9E3779B9U) & mask;; at = (at + 1) & mask) {
    std::uint32_t seen = __ldcg(slots + at);
    if (seen == kNoRow) seen = atomicCAS(slots + at, kNoRow, entry);
    if (seen == kNoRow) return at;
    if (seen < mine.first || seen >= mine.last || mine.keys[seen - mine.first] != key) continue;
    if (entry < seen) atomicMin(slots + at, entry);
    return at;
  }
}

// For each entry, the first one of its part with its key.
struct FirstEntries {
  std::uint32_t const *slots, *slot_of;

  GPUPS_FN std::uint32_t operator[](std::size_t entry) const { return slots[slot_of[entry]]; }
};

// Queued on the stream; the result may be read after that, as long as `scratch` is there.
inline FirstEntries find_first_entries(DeviceExec ex, DeviceParts parts, QueuedScratch& scratch) {
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  std::size_t const size = std::bit_ceil(2 * parts.entries), bytes = size * sizeof(std::uint32_t);
  auto* const slots = scratch.array<std::uint32_t>(size);
  auto* const slot_of = scratch.array<std::uint32_t>(parts.entries);
  auto const mask = static_cast<std::uint32_t>(size - 1);
  check_cuda(cudaMemsetAsync(slots, 0xFF, bytes, stream), "clearing a table of keys");
  each(ex, parts.entries, [=] GPUPS_FN(std::size_t i) {
    std::uint32_t const part = parts.part_of(i);
    Key const key = parts.key(part, i);
    // Of the threads of a warp that have the same key, the first one, whose entry is the smallest, acts for all.
    unsigned const active = __activemask();
    unsigned const same = __match_any_sync(active, number(key)) & __match_any_sync(active, part);
    unsigned const leader = __ffs(static_cast<int>(same)) - 1;
    std::uint32_t slot = 0;
    if (threadIdx.x % 32 == leader) slot = claim_slot(parts, part, static_cast<std::uint32_t>(i), key, slots, mask);
    slot_of[i] = __shfl_sync(same, slot, static_cast<int>(leader));
  });
  return {slots, slot_of};
}

}  // namespace gpups::kernels
