// SPDX-License-Identifier: Apache-2.0
// Maps keys to row numbers. Any key is allowed, and a key keeps its number until it is erased. Growth moves entries of
// the index, in bounded parts (kernels/index/bucket_storage.hpp), but never rows. Takes 15 to 23 bytes per key, and 8
// in the list of keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/index/bucket_storage.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// An index from keys to row numbers.
class KeyIndex {
 public:
  KeyIndex() = default;
  // expected_keys: the number of keys that fill three quarters of the places; the index does not grow before. growth:
  // that of the list of keys.
  KeyIndex(Device device, std::size_t expected_keys, Growth growth = Growth::kInPlace);

  // Sets ids[i] to the number of keys[i], or to kNoRow. Queued on `stream`.
  void find(Stream& stream, View<Key const> keys, View<std::uint32_t> ids) const;
  // The same for several indices at once, on a GPU in one launch. Queued on `stream`.
  struct Search {
    KeyIndex const* index;
    View<Key const> keys;     // (n)
    View<std::uint32_t> ids;  // (>= n)
  };
  static void find(Stream& stream, std::span<Search const> searches);
  // Does the first part of wait_insert(): writes `ids`, and the number of ids that are kNoRow to counts[s] for search
  // s. On the host, if the last batch of an index had many new keys, all ids are set to kNoRow without a search,
  // because a search would cost more than it saves. Queued on `stream`.
  static void find_missing(Stream& stream, std::span<Search const> searches, View<std::uint32_t> counts);
  // The same. Returns the numbers. Waits for `stream` once.
  static std::vector<std::uint32_t> wait_find_missing(Stream& stream, std::span<Search const> searches);

  // Writes the number of each key to `ids`. Keys without a number get one, in the order of first use in the batch: the
  // highest free number, or the next one if none is free. A batch may have a key many times. Returns the new numbers in
  // this order. Waits for `stream`. REQUIRES: nothing else uses the index meanwhile.
  Array<std::uint32_t> wait_find_or_insert(Stream& stream, View<Key const> keys, View<std::uint32_t> ids);
  // The same. missing: the result of wait_find_missing() that was just called with these `keys` and `ids`; nullopt: it
  // was not called.
  Array<std::uint32_t> wait_insert(Stream& stream, View<Key const> keys, View<std::uint32_t> ids,
                                   std::optional<std::size_t> missing);
  // The same for several indices, which are different ones. missing: from find_missing(), or the number of keys. Waits
  // for `stream` once for all indices, or not at all if all have distinct keys, and additionally only for those that
  // grow or have very many keys. Returns the new numbers of each. table: its name, for errors. distinct: no key is
  // there twice, so the number of missing keys is that of new ones.
  struct Insertion {
    KeyIndex* index;
    View<Key const> keys;
    View<std::uint32_t> ids;
    std::size_t missing;
    std::string_view table{};
    bool distinct = false;
  };
  static std::vector<Array<std::uint32_t>> wait_insert(Stream& stream, std::span<Insertion const> insertions);
  // Continues growth if the index is growing, as insertions do. Some calls wait for `stream`.
  void wait_continue_growth(Stream& stream);

  // Erases keys; their numbers become free for new keys. Keys that are absent are ignored. Waits for `stream`.
  // REQUIRES: nothing else uses the index meanwhile.
  void wait_erase(Stream& stream, View<Key const> keys);
  // The same by the numbers of keys. ids: (n); numbers without a key, kNoRow, and repeated ones are ignored.
  void wait_erase_ids(Stream& stream, View<std::uint32_t const> ids);
  // The same for several indices, which are different ones. Waits for `stream` once, or not at all if all ids are
  // known to be distinct and to have a key. all_used: they are.
  struct Erasure {
    KeyIndex* index;
    View<std::uint32_t const> ids;
    bool all_used = false;
  };
  static void wait_erase_ids(Stream& stream, std::span<Erasure const> erasures);

  // Returns the numbers that have a key, ascending; see keys() for their keys. Queued on `stream`.
  Array<std::uint32_t> list_ids(Stream& stream) const;
  // Returns the keys, by number.
  Rows<std::uint64_t const> keys() const { return keys_.const_ref(); }

  // Returns the buckets, for kernels that search. They are valid until the index changes.
  Buckets buckets() const;

  // Returns the number of keys.
  std::size_t size() const { return ids_end_ - free_count_; }
  // Returns a bound: all numbers are below it. It never decreases.
  std::size_t ids_end() const { return ids_end_; }
  // Returns the number of keys that fit before the index must grow.
  std::size_t capacity() const { return buckets_.capacity(); }
  // Returns the bytes of an index for `keys` keys, before it grows.
  static std::size_t bytes_for(std::size_t keys, Growth growth = Growth::kInPlace);
  // Returns how many times the index began to grow.
  std::size_t growths() const { return buckets_.growths(); }
  std::size_t bytes() const { return buckets_.bytes() + keys_.bytes() + free_.bytes(); }

 private:
  // Inserts the missing keys of a part of a batch, and writes their numbers to the beginning of `new_ids`. Returns how
  // many there were.
  std::size_t wait_insert_part(Stream& stream, Search const& part, std::size_t missing, View<std::uint32_t> new_ids);
  // Makes room for new keys. Returns the free numbers that they get first, the last one before the others.
  View<std::uint32_t const> wait_make_room(Stream& stream, std::size_t missing);
  View<std::uint32_t const> free() const { return free_.view().slice(0, free_count_); }
  // Counts new keys, of which the first have used free numbers. free: their number.
  void count_new(std::size_t count, std::size_t free);

  BucketStorage buckets_;
  RowStorage<std::uint64_t> keys_;
  Array<std::uint32_t> free_;  // (>= free_count_): numbers without a key, ascending, on the device of the index
  std::size_t free_count_ = 0;
  std::size_t ids_end_ = 0;
  bool many_new_ = true;  // whether the last batch had many new keys
};

}  // namespace gpups::kernels
