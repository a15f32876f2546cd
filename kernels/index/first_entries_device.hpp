// SPDX-License-Identifier: Apache-2.0
// Finds, for each entry, the first entry with the same key, on a GPU. The slots of the hash table are numbers of
// entries, so that the keys are not copied.
#pragma once

#include <bit>

#include "kernels/base/hash.hpp"
#include "kernels/index/unique_keys.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/runtime/device_scratch.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// A part that has entries, as kernels use it.
struct DevicePart {
  Key const* keys;
  Key* unique;
  std::uint32_t *positions, *offsets, *order;
  std::uint32_t first, last;  // its entries are first .. last - 1, numbered over all parts
};

// All parts that have entries, as kernels use them.
struct DeviceParts {
  DevicePart const* list;
  std::uint32_t count;
  std::size_t entries;

  // Returns the part of an entry.
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

// Returns the slot of this key. Afterwards, the slot has the number of an entry with the key: `entry` or a smaller one.
//
// A slot that is taken keeps its key. Slots are read from the second-level cache, on which atomic operations act: after
// a stale read of a free slot, all threads with a frequent key would do the same atomic operation, one after another.
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

// For each entry, the first entry of the same part with the same key.
struct FirstEntries {
  std::uint32_t const *slots, *slot_of;

  GPUPS_FN std::uint32_t operator[](std::size_t entry) const { return slots[slot_of[entry]]; }
};

// Queues the search on the stream. The result may be read by work that is queued later, as long as `scratch` exists.
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
    // Of the threads of a warp with the same key, the first one, which has the smallest entry, acts for all of them.
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
