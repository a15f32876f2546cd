// SPDX-License-Identifier: Apache-2.0
// The key dictionary of a reader and an owner, for one table. A key that the reader has sent before is sent as the
// number of its slot, in one or two bytes. The reader has a KeyEncoder and the owner a KeyDecoder. Both process the
// same lists in the same order, so they assign the same slots without further messages
// (docs/decisions/007-row-codecs-and-key-dictionaries.md).
//
// The slots of a batch's keys stay valid until the gradients of the batch's step have been sent, so either end may
// store data by slot.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cache/wire/key_coding.hpp"
#include "cache/wire/second_chance_slots.hpp"
#include "gpups/array.hpp"
#include "kernels/index/key_index.hpp"

namespace gpups::cache {

// A slot whose key was replaced by another one. before: the key that was removed.
struct ReplacedKey {
  std::uint32_t slot;
  Key before;
  bool operator==(ReplacedKey const&) const = default;
};

// The slots of an encoded or decoded list of n keys, in the order of the wire. The first `known` keys had their slots
// before.
struct KeyList {
  std::vector<std::uint32_t> slots;  // (n), kNoSlot for a key without a slot
  std::size_t known = 0;
  std::vector<ReplacedKey> replaced;
};

// The reader's end of a dictionary: replaces keys by slots. Functions with `wait` in their names block until `stream`,
// a host stream, is done.
class KeyEncoder {
 public:
  // capacity: maximum number of keys. Memory is allocated as keys are added.
  explicit KeyEncoder(std::size_t capacity) : slots_(capacity), index_(Device::host(), 0, kGrowth) {}

  // A list of a batch's keys. keys: (n), distinct, on the host. step: of the batch. wire: the encoded keys are
  // appended.
  struct List {
    KeyEncoder* dictionary;
    View<Key const> keys;
    Clock step;
    std::vector<std::uint8_t>* wire;
  };
  // Encodes lists, and adds new keys to their dictionaries. now: the step whose message carries the lists; keys of
  // batches of step `now` or later are not replaced. The dictionaries are searched together: the number of launches
  // depends only on the largest number of lists of one dictionary.
  static std::vector<KeyList> wait_encode_keys(Stream& stream, std::span<List const> lists, Clock now);
  // The same for one list.
  KeyList wait_encode_keys(Stream& stream, View<Key const> keys, Clock step, Clock now,
                           std::vector<std::uint8_t>& wire);

  // Appends encoded keys to `wire` without changing the dictionary. keys: (n), distinct, on the host.
  void wait_encode_known(Stream& stream, View<Key const> keys, std::vector<std::uint8_t>& wire) const;

  // Returns the bytes of memory for `keys` keys.
  static std::size_t bytes_for(std::size_t keys);

 private:
  // There is one encoder for each other rank and table, and most have few keys.
  static constexpr kernels::Growth kGrowth = kernels::Growth::kByMoving;

  struct SplitKeys {
    std::vector<IndexedKey> known, fresh;  // values: slots in `known`, keys in `fresh`
  };
  // New keys, and the slots that they get.
  struct NewKeys {
    std::vector<Key> keys;             // (m)
    std::vector<std::uint32_t> slots;  // (m): first those of keys that are replaced
    std::size_t replaced = 0;
  };
  static std::vector<SplitKeys> wait_find(Stream& stream, std::span<List const> lists);
  static SplitKeys split(View<Key const> keys, View<std::uint32_t const> ids);
  KeyList encode(SplitKeys found, List const& list, Clock now, NewKeys& added);
  static void wait_remember(Stream& stream, std::span<List const> lists, std::span<NewKeys const> added);

  SecondChanceSlots slots_;
  kernels::KeyIndex index_;  // a key's number in it is its slot
};

// The owner's end of a dictionary: replaces slots by keys.
class KeyDecoder {
 public:
  explicit KeyDecoder(std::size_t capacity) : slots_(capacity) {}

  struct DecodedList : KeyList {
    std::vector<Key> keys;  // (n)
  };
  // Decodes the list of KeyEncoder::wait_encode_keys() with `count` keys, removes it from the front of `wire`, and adds
  // new keys to the dictionary. step, now: as for the encoder. Throws comm::SerializationError for invalid bytes.
  DecodedList decode(std::string_view& wire, std::uint64_t count, Clock step, Clock now);

  // Decodes the list of KeyEncoder::wait_encode_known() with `count` keys and removes it from the front of `wire`.
  // Throws comm::SerializationError for invalid bytes. REQUIRES: decode() was called for all lists that the encoder
  // encoded before this one, and for no later list.
  std::vector<Key> decode_known(std::string_view& wire, std::uint64_t count) const;

  static std::size_t bytes_for(std::size_t keys) { return keys * (SecondChanceSlots::kBytesEach + sizeof(Key)); }

 private:
  std::vector<Key> keys_of(CodedKeys const& coded) const;

  SecondChanceSlots slots_;
  std::vector<Key> keys_;  // by slot
};

}  // namespace gpups::cache
