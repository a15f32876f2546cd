// SPDX-License-Identifier: Apache-2.0
// The uses of the rows of one table and home that ranks have announced, for the policy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "cache/placement/policy.hpp"
#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"
#include "kernels/key_index.hpp"

namespace gpups::cache {

// For the thread that makes progress. Takes about 100 bytes of host memory for each key, and 8 for each use.
class KeyUses {
 public:
  KeyUses() : host_(Device::host(), 1), index_(Device::host(), 0, kernels::Growth::kByMoving) {}

  // Adds a use of each key. keys: (n), distinct, on the host.
  void add(View<Key const> keys, RowUse use);

  // The keys that batches of a step use, each once, and all of their uses in this step and later ones.
  struct UsedKeys {
    std::vector<Key> keys;
    std::vector<std::uint32_t> first;  // (n + 1)
    std::vector<RowUse> uses;
  };
  // Returns the keys of a step, and forgets their uses in it. REQUIRES: it was called for all earlier steps with uses.
  UsedKeys take(Clock step);

 private:
  static constexpr std::uint32_t kEnd = 0xFFFFFFFF;
  static constexpr std::size_t kChunkUses = 14;
  // Some uses of one key, in a cache line. A use has the low 16 bits of its step, and its reader.
  struct alignas(64) UseChunk {
    std::uint32_t uses[kChunkUses];
    std::uint32_t count;
    std::uint32_t next;  // a full chunk, or kEnd
  };
  std::uint32_t add_chunk(std::uint32_t next);
  void keep_later(std::uint32_t id, Clock step, std::vector<RowUse>& uses);

  Stream host_;
  kernels::KeyIndex index_;
  std::vector<std::uint32_t> first_;  // by the key's number in the index: the chunk that is not full
  std::vector<UseChunk> chunks_;
  std::vector<std::uint32_t> free_;                      // chunks without uses
  std::map<Clock, std::vector<std::uint32_t>> of_step_;  // numbers of keys, which may repeat
};

}  // namespace gpups::cache
