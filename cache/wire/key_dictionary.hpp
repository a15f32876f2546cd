// SPDX-License-Identifier: Apache-2.0
// The key dictionary of a reader and an owner, for one table. A key that the reader has sent before is sent as the
// number of its slot, in one to four bytes. The reader has a KeyEncoder and the owner a KeyDecoder. Both process the
// same lists in the same order, so they assign the same slots without further messages
// (docs/decisions/007-row-codecs-and-key-dictionaries.md).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cache/wire/key_coding.hpp"
#include "cache/wire/recent_keys.hpp"
#include "gpups/array.hpp"
#include "gpups/stream.hpp"

namespace gpups::cache {

// The reader's end of a dictionary: replaces keys by slots.
class KeyEncoder {
 public:
  // capacity: maximum number of keys. Memory is allocated as keys are added.
  explicit KeyEncoder(std::size_t capacity) : recent_(capacity) {}

  // A list of a batch's keys. dictionary: null for none. keys: (n), ascending and distinct, on the host. wire: the
  // encoded keys are appended.
  struct List {
    KeyEncoder* dictionary;
    View<Key const> keys;
    std::vector<std::uint8_t>* wire;
  };
  // Encodes lists, and adds new keys to their dictionaries. Lists of different dictionaries are encoded in parallel, on
  // the threads of `host`, which is a host stream. The bytes do not depend on the number of threads.
  static void encode(Stream& host, std::span<List const> lists);
  // The same for one list of this dictionary. A list without keys changes nothing.
  void encode(View<Key const> keys, std::vector<std::uint8_t>& wire);

  // Appends encoded keys to `wire` without changing the dictionary. keys: (n), ascending and distinct, on the host.
  void encode_known(View<Key const> keys, std::vector<std::uint8_t>& wire) const;

  // Returns the bytes of memory for `keys` keys, and the bytes that are allocated.
  static std::size_t bytes_for(std::size_t keys);
  std::size_t bytes() const;

 private:
  // The entry of a key in the table, or the free one that it can get: then slot is kNoSlot, or all are if the table has
  // no memory.
  struct Entry {
    std::uint32_t slot, tag = 0;
    std::uint64_t place = 0;
  };
  template <class Take>
  void find(View<Key const> keys, std::span<std::uint32_t const> positions, Take take) const;
  void rebuild();

  RecentKeys recent_;
  // By hash: kNoSlot, or a slot below bits of the key's hash. The size is a power of two, more than 1.5 times the
  // number of keys.
  std::vector<std::uint32_t> table_;
};

// The owner's end of a dictionary: replaces slots by keys.
class KeyDecoder {
 public:
  explicit KeyDecoder(std::size_t capacity) : recent_(capacity) {}

  // A list of `count` keys. dictionary: null for none.
  struct List {
    KeyDecoder* dictionary;
    std::uint64_t count;
  };
  // Decodes the lists of KeyEncoder::encode(), removes them from the front of `wire`, and adds new keys to their
  // dictionaries. Lists of different dictionaries are decoded in parallel, on the threads of `host`. Returns the keys
  // of each list, ascending. Throws comm::SerializationError for invalid bytes.
  static std::vector<std::vector<Key>> decode(Stream& host, std::span<List const> lists, std::string_view& wire);
  // The same for one list of this dictionary.
  std::vector<Key> decode(std::string_view& wire, std::uint64_t count) { return add(take_list(wire, count), count); }

  // Decodes the list of KeyEncoder::encode_known() with `count` keys and removes it from the front of `wire`. Returns
  // the keys, ascending. Throws comm::SerializationError for invalid bytes. REQUIRES: decode() was called for all lists
  // that the encoder encoded before this one, and for no later list.
  std::vector<Key> decode_known(std::string_view& wire, std::uint64_t count) const {
    return decode_keys(take_list(wire, count), count, recent_.keys()).keys;
  }

  static std::size_t bytes_for(std::size_t keys) { return keys * RecentKeys::kBytesEach; }
  std::size_t bytes() const { return bytes_for(recent_.reserved()); }
  // Returns the number of keys that have slots.
  std::size_t size() const { return recent_.keys().size(); }

 private:
  std::vector<Key> add(std::string_view list, std::uint64_t count);

  RecentKeys recent_;
};

}  // namespace gpups::cache
