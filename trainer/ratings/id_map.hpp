// SPDX-License-Identifier: Apache-2.0
// Ids of rows or of columns, any 64-bit numbers, numbered from 0 in order of arrival. Costs about 20 bytes for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::trainer {

class IdMap {
 public:
  // The number of an id, new if need be. REQUIRES: there are less than 2^32 - 1 of them.
  std::uint32_t add(std::uint64_t id);
  std::size_t size() const { return keys_.size(); }
  // Of memory.
  std::uint64_t bytes() const { return keys_.capacity() * sizeof(Key) + slots_.capacity() * sizeof(std::uint32_t); }
  // number -> the key of its row in the table, which is the id.
  std::vector<Key> const& keys() const { return keys_; }

 private:
  void grow();

  std::vector<Key> keys_;
  std::vector<std::uint32_t> slots_;  // open addressing, at most half full: number + 1; 0 is free
};

}  // namespace gpups::trainer
