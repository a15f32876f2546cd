// SPDX-License-Identifier: Apache-2.0
// Finds distinct keys on a GPU. A hash table finds the first entry of each key. Then entries are sorted by the first
// entry of their key, which needs fewer bits than sorting by keys, and each run of sorted entries is a distinct key.
// The order of keys is by home and first use.
//
// Entries are numbered over all parts, so that there are no more launches than for one part.
#pragma once

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <vector>

#include "kernels/base/hash.hpp"
#include "kernels/index/unique_keys.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/runtime/device_scratch.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/read_back.hpp"

namespace gpups::kernels {

// Finds, for each entry, the first entry with the same key, on a GPU. The slots of the hash table are numbers of
// entries, so that the keys are not copied.

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

// The order of entries: by part and home, if there are several homes, and then by the first entry of their key.
struct EntryOrder {
  std::uint32_t homes;
  int entry_bits, bits;

  EntryOrder(std::size_t entries, std::size_t parts, std::uint32_t homes)
      : homes(homes),
        entry_bits(std::max(1, static_cast<int>(std::bit_width(entries - 1)))),
        bits(entry_bits + (homes > 1 ? static_cast<int>(std::bit_width(parts * homes - 1)) : 0)) {}

  GPUPS_FN std::uint64_t key(std::uint32_t part, std::uint32_t home, std::uint32_t first) const {
    return homes > 1 ? (std::uint64_t{part} * homes + home) << entry_bits | first : first;
  }
  GPUPS_FN std::uint32_t home(std::uint64_t key, std::uint32_t part) const {
    return homes > 1 ? static_cast<std::uint32_t>((key >> entry_bits) - std::uint64_t{part} * homes) : 0;
  }
};

// Sorts entries and writes the results of all parts. home_offsets: (parts, homes + 1), on the device. Queued on the
// stream.
template <class SortKey>
void sort_entries(DeviceExec ex, DeviceParts parts, EntryOrder order, FirstEntries first_entry,
                  std::uint32_t* home_offsets, QueuedScratch& scratch) {
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  std::size_t const n = parts.entries;
  auto *const key = scratch.array<SortKey>(n), *const sorted = scratch.array<SortKey>(n);
  auto *const entry = scratch.array<std::uint32_t>(n), *const from = scratch.array<std::uint32_t>(n);
  auto* const rank = scratch.array<std::uint32_t>(n);
  each(ex, n, [=] GPUPS_FN(std::size_t i) {
    std::uint32_t const p = parts.part_of(i);
    key[i] = static_cast<SortKey>(order.key(p, home_of(parts.key(p, i), order.homes), first_entry[i]));
    entry[i] = static_cast<std::uint32_t>(i);
  });
  auto const count = static_cast<std::int32_t>(n);
  scratch.run([&](void* memory, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(memory, bytes, key, sorted, entry, from, count, 0, order.bits, stream);
  });
  // rank[k]: the number of distinct keys up to position k, so the first key has rank 1.
  each(ex, n, [=] GPUPS_FN(std::size_t k) { rank[k] = k == 0 || sorted[k] != sorted[k - 1] ? 1 : 0; });
  scratch.run([&](void* memory, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(memory, bytes, rank, rank, count, stream);
  });
  each(ex, n, [=] GPUPS_FN(std::size_t k) {
    std::uint32_t const i = from[k], p = parts.part_of(i);  // positions of a part are the numbers of its entries
    DevicePart const& part = parts.list[p];
    std::uint32_t const row = rank[k] - rank[part.first];
    part.positions[i - part.first] = row;
    bool const is_new = k == part.first || rank[k] != rank[k - 1];
    if (is_new) part.unique[row] = parts.key(p, i);
    if (part.order == nullptr) return;
    part.order[k - part.first] = i - part.first;
    if (is_new) part.offsets[row] = static_cast<std::uint32_t>(k - part.first);
    if (k + 1 == part.last) part.offsets[row + 1] = part.last - part.first;
  });
  each(ex, parts.count * (order.homes + std::size_t{1}), [=] GPUPS_FN(std::size_t at) {
    auto const p = static_cast<std::uint32_t>(at / (order.homes + 1));
    auto const home = static_cast<std::uint32_t>(at % (order.homes + 1));
    std::uint32_t const first = parts.list[p].first, last = parts.list[p].last;
    std::uint32_t low = first, high = last;
    while (low < high) {
      std::uint32_t const middle = low + (high - low) / 2;
      order.home(sorted[middle], p) < home ? low = middle + 1 : high = middle;
    }
    home_offsets[at] = low == first ? 0 : rank[low - 1] - rank[first] + 1;
  });
}

// Returns the parts that have entries, and writes the results of the others, which have no keys.
inline std::vector<DevicePart> list_parts(UniqueKeys const& u, cudaStream_t stream) {
  std::vector<DevicePart> list;
  std::uint32_t entries = 0;
  for (KeyPart const& part : u.parts) {
    std::uint32_t const first = entries;
    entries += static_cast<std::uint32_t>(part.keys.size());
    if (entries > first) {
      list.push_back({part.keys.data(), part.unique.data(), part.positions.data(), part.offsets.data(),
                      part.order.data(), first, entries});
      continue;
    }
    for (std::uint32_t& offset : part.home_offsets) offset = 0;
    if (part.offsets.empty()) continue;
    check_cuda(cudaMemsetAsync(part.offsets.data(), 0, sizeof(std::uint32_t), stream), "clearing an offset");
  }
  return list;
}

inline void unique_keys(DeviceExec ex, UniqueKeys const& u) {
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  std::vector<DevicePart> const list = list_parts(u, stream);
  if (list.empty()) return wait_for(ex, "waiting for offsets");

  std::size_t const entries = list.back().last;
  EntryOrder const order(entries, list.size(), u.homes);
  std::size_t const home_count = u.homes + std::size_t{1};
  std::vector<std::uint32_t> found(list.size() * home_count);
  QueuedScratch scratch(ex, u.parts.front().unique.device());
  auto* const there = scratch.array<DevicePart>(list.size());
  auto* const home_offsets = scratch.array<std::uint32_t>(found.size());
  copy_to_device(ex, there, list.data(), list.size() * sizeof(DevicePart), "copying a list of parts");
  DeviceParts const parts{there, static_cast<std::uint32_t>(list.size()), entries};
  FirstEntries const first_entry = find_first_entries(ex, parts, scratch);
  order.bits <= 32 ? sort_entries<std::uint32_t>(ex, parts, order, first_entry, home_offsets, scratch)
                   : sort_entries<std::uint64_t>(ex, parts, order, first_entry, home_offsets, scratch);

  copy_to_host(ex, found.data(), home_offsets, found.size() * sizeof(std::uint32_t), "reading counts");
  wait_for(ex, "waiting for distinct keys");
  auto next = found.begin();
  for (KeyPart const& part : u.parts) {
    if (part.keys.empty()) continue;
    std::copy_n(next, home_count, part.home_offsets.begin());
    next += static_cast<std::ptrdiff_t>(home_count);
  }
}

}  // namespace gpups::kernels
