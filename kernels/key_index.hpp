// SPDX-License-Identifier: Apache-2.0
// Finds the row number of a key. Any key is legal, and a key keeps its number until it is erased. Growing moves entries
// of the index, in bounded parts (kernels/bucket_storage.hpp), never a row. 15 to 23 bytes per key, and 8 in the list
// of keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/bucket_storage.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

class KeyIndex {
 public:
  KeyIndex() = default;
  // So many keys take three quarters of the places, and come in without growth. growth: of the list of keys.
  KeyIndex(Device device, std::size_t expected_keys, Growth growth = Growth::kInPlace);

  // ids[i] = the number of keys[i], or kNoRow. Queued on `stream`.
  void find(Stream& stream, View<Key const> keys, View<std::uint32_t> ids) const;
  // The same for several indices at once: on a GPU in one launch for up to 32. Queued on `stream`.
  struct Search {
    KeyIndex const* index;
    View<Key const> keys;     // (n)
    View<std::uint32_t> ids;  // (>= n)
  };
  static void find(Stream& stream, std::span<Search const> searches);
  // Begins wait_insert(): writes `ids`, and returns how many of each search's are kNoRow. On the host, after a batch
  // with many new keys, that is all of them, unsearched: searching would cost more than it saves. Waits for `stream`,
  // once.
  static std::vector<std::uint32_t> wait_find_missing(Stream& stream, std::span<Search const> searches);

  // Keys without a number get one, in the order in which the batch has them first: a free one, the highest first, else
  // the next. A key may be in a batch many times. Returns the new numbers in this order. Waits for `stream`.
  // REQUIRES: nothing else uses the index meanwhile.
  Array<std::uint32_t> wait_find_or_insert(Stream& stream, View<Key const> keys, View<std::uint32_t> ids);
  // The same. missing: what wait_find_missing() has just returned for these keys, having written `ids`; nullopt: it was
  // not called.
  Array<std::uint32_t> wait_insert(Stream& stream, View<Key const> keys, View<std::uint32_t> ids,
                                   std::optional<std::size_t> missing);
  // Goes on with growing, if that is under way, as inserting does. Waits for `stream` at times.
  void wait_go_on_growing(Stream& stream);

  // Takes keys out; their numbers are free for new ones. Keys that are not there do no harm. Waits for `stream`.
  // REQUIRES: nothing else uses the index meanwhile.
  void wait_erase(Stream& stream, View<Key const> keys);
  // The same by the keys' numbers. ids: (n), distinct; numbers without a key do no harm.
  void wait_erase_ids(Stream& stream, View<std::uint32_t const> ids);

  // The numbers that have a key, ascending; keys() has the keys. Waits for `stream`.
  Array<std::uint32_t> wait_ids(Stream& stream) const;
  // The key of each number that has one.
  Rows<std::uint64_t const> keys() const { return keys_.const_ref(); }

  // What kernels that search need; until the index changes.
  Buckets buckets() const;

  // Keys that have a number.
  std::size_t size() const { return ids_end_ - free_.size(); }
  // Numbers are below this; it never falls.
  std::size_t ids_end() const { return ids_end_; }
  // Keys that fit before it grows.
  std::size_t capacity() const { return buckets_.capacity(); }
  // What an index for so many keys takes, before it grows.
  static std::size_t bytes_for(std::size_t keys, Growth growth = Growth::kInPlace);
  // How often it began to grow.
  std::size_t growths() const { return buckets_.growths(); }
  std::size_t bytes() const { return buckets_.bytes() + keys_.bytes(); }

 private:
  // Inserts the missing keys of a part of a batch, the first of which get the numbers new_ids. Returns how many.
  std::size_t wait_insert_part(Stream& stream, Search const& part, std::size_t missing, View<std::uint32_t> new_ids);

  BucketStorage buckets_;
  RowStorage<std::uint64_t> keys_;
  std::vector<std::uint32_t> free_;  // numbers without a key, ascending
  std::size_t ids_end_ = 0;
  bool many_new_ = true;  // in the last batch
};

}  // namespace gpups::kernels
