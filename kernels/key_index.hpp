// SPDX-License-Identifier: Apache-2.0
// Finds the row number of a key: open addressing in buckets of one cache line, at most three quarters full. Any key is
// legal. Growing and forgetting move the index's entries, never a row. 17 to 34 bytes per key, and 8 in the list of
// keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/bucket.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

class KeyIndex {
 public:
  KeyIndex() = default;
  // Room for `expected_keys` before the first growth.
  KeyIndex(Device device, std::size_t expected_keys);

  // ids[i] = the number of keys[i], or kNoRow. Queued on `stream`.
  void find(Stream& stream, View<Key const> keys, View<std::uint32_t> ids) const;

  // The same, and keys without a number get one, in the order of the batch: a free one, else the next. Returns the new
  // numbers in this order. Waits for `stream`. REQUIRES: keys are distinct; nothing else uses the index meanwhile.
  Array<std::uint32_t> wait_find_or_insert(Stream& stream, View<Key const> distinct_keys, View<std::uint32_t> ids);

  // Forgets the keys of all numbers but those whose first word in `keep` is not 0. free: (n), the others, ascending;
  // they are given to new keys. Takes memory for a second index meanwhile. Waits for `stream`.
  void wait_forget(Stream& stream, Rows<std::uint32_t const> keep, View<std::uint32_t const> free);

  // What kernels that search need; until the index changes.
  Buckets buckets() const;

  // Keys that have a number.
  std::size_t size() const { return ids_end_ - free_.size(); }
  // Numbers are below this; it never falls.
  std::size_t ids_end() const { return ids_end_; }
  // Keys that fit before it grows.
  std::size_t capacity() const;
  // What an index for so many keys takes, before it grows.
  static std::size_t bytes_for(std::size_t keys);
  // How often it was doubled.
  std::size_t growths() const { return growths_; }
  std::size_t bytes() const { return buckets_.bytes() + keys_.bytes(); }
  // The key of each number that one has.
  Rows<std::uint64_t const> keys() const { return keys_.const_ref(); }

 private:
  std::vector<std::uint32_t> take_ids(std::size_t count);
  // Moves the keys to so many buckets; keep: see wait_forget().
  void wait_move(Stream& stream, std::size_t buckets, Rows<std::uint32_t const> keep);

  Array<std::uint64_t> buckets_;  // 8 words each
  RowStorage<std::uint64_t> keys_;
  std::vector<std::uint32_t> free_;  // numbers without a key, taken from the end
  std::size_t ids_end_ = 0;
  std::size_t growths_ = 0;
};

}  // namespace gpups::kernels
