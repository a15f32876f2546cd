// SPDX-License-Identifier: Apache-2.0
// Numbers the ids of rows or of columns from 0, in the order in which they are added. An id is any 64-bit number. Takes
// about 20 bytes per id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::trainer {

// A hash map from ids to numbers.
class IdMap {
 public:
  // Returns the number of an id, and adds the id if it is new. REQUIRES: fewer than 2^32 - 1 ids.
  std::uint32_t add(std::uint64_t id);
  std::size_t size() const { return keys_.size(); }
  // Returns the bytes of memory.
  std::uint64_t bytes() const { return keys_.capacity() * sizeof(Key) + slots_.capacity() * sizeof(std::uint32_t); }
  // Maps a number to the key of its row in the table. The key is the id.
  std::vector<Key> const& keys() const { return keys_; }

 private:
  void grow();

  std::vector<Key> keys_;
  std::vector<std::uint32_t> slots_;  // open addressing, at most half full: number + 1; 0 is free
};

}  // namespace gpups::trainer
