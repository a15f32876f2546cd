// SPDX-License-Identifier: Apache-2.0
// Inserts keys on a GPU. First, equal absent keys of the batch are matched, in a hash table of their positions. The
// keys of a batch do not change, so threads with equal keys find the same slot without a lock, and the smallest
// position stays in it. So ids do not depend on the order of threads.
#pragma once

#include <bit>

#include "kernels/compact.hpp"
#include "kernels/index_keys.hpp"
#include "kernels/launch.hpp"
#include "kernels/read_back.hpp"

namespace gpups::kernels {

// Sets the id of each absent key to kNewKey + its slot.
inline void claim_slots(DeviceExec ex, KeysOfIndex const& f, std::uint32_t* slots, std::uint64_t mask) {
  each(ex, f.keys.size(), [f, slots, mask] GPUPS_FN(std::size_t i) {
    if (f.ids[i] != kNoRow) return;
    auto const place = static_cast<std::uint32_t>(i);
    std::uint64_t at = hash_of(f.keys[i]) >> 32 & mask;
    for (;; at = (at + 1) & mask) {
      std::uint32_t seen = atomic_load(slots + at);
      if (seen == kNoRow) seen = atomic_exchange_if(slots + at, kNoRow, place);
      if (seen == kNoRow) break;
      if (f.keys[seen] != f.keys[i]) continue;
      if (place < seen) atomic_min(slots + at, place);
      break;
    }
    f.ids[i] = kNewKey | static_cast<std::uint32_t>(at);
  });
}

inline void insert_keys(DeviceExec ex, InsertKeys const& f) {
  auto const keys = f.index.keys;
  auto const ids = f.index.ids;
  Array<std::uint32_t> const table(keys.device(), std::bit_ceil(2 * keys.size()));
  std::uint32_t* const slots = table.data();
  each(ex, table.size(), [slots] GPUPS_FN(std::size_t s) { slots[s] = kNoRow; });
  claim_slots(ex, f.index, slots, table.size() - 1);
  each(ex, keys.size(), [ids, slots] GPUPS_FN(std::size_t i) {
    if ((ids[i] & kNewKey) != 0) ids[i] = kNewKey | slots[ids[i] & ~kNewKey];
  });
  Array<std::uint32_t> const first_places(keys.device(), keys.size());
  std::uint32_t* const places = first_places.data();
  *f.count = wait_compact(
      ex, keys.device(), keys.size(), [ids] GPUPS_FN(std::size_t i) { return ids[i] == (kNewKey | i); },
      [places] GPUPS_FN(std::size_t i, std::uint32_t rank) { places[rank] = static_cast<std::uint32_t>(i); });
  if (*f.count == 0) return;
  each(ex, *f.count, [f, places] GPUPS_FN(std::size_t r) {
    std::uint32_t const id = f.number_of_new(r);
    Key const key = f.index.keys[places[r]];
    std::uint64_t const hash = hash_of(key);
    f.index.buckets.of(hash).insert(key, hash, id);
    f.index.ids[places[r]] = f.new_ids[r] = id;
    *f.key_of_id.row(id) = number(key);
  });
  each(ex, keys.size(), [ids] GPUPS_FN(std::size_t i) {
    if ((ids[i] & kNewKey) != 0) ids[i] = ids[ids[i] & ~kNewKey];
  });
  // The stream uses `places`, which is freed on return.
  wait_for(ex, "waiting for new keys");
}

}  // namespace gpups::kernels
