// SPDX-License-Identifier: Apache-2.0
// Keys of a table that a reader has named to an owner, and their slots, which stand for them from then on. Both ends
// keep one for each other rank and table; the same lists of keys in the same order keep them alike.
//
// For any list, `slots` say where things are that either end keeps for a key of the pair, such as residuals: those of a
// batch's keys stay theirs until the gradients of its step have been sent.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cache/key_coding.hpp"
#include "cache/second_chance_slots.hpp"
#include "gpups/array.hpp"
#include "kernels/key_index.hpp"

namespace gpups::cache {

// A slot that means another key now.
struct ReplacedKey {
  std::uint32_t slot;
  Key before;
  bool operator==(ReplacedKey const&) const = default;
};

// The keys of a list as both ends know them, in the order of the wire. The first `known` had their slots before.
struct KeyList {
  std::vector<std::uint32_t> slots;  // (n), kNoSlot where a key has none
  std::size_t known = 0;
  std::vector<ReplacedKey> replaced;
};

// The reader's end: finds the slots of keys.
class KeyEncoder {
 public:
  // capacity: keys that it remembers; memory is taken as they are named.
  explicit KeyEncoder(std::size_t capacity) : slots_(capacity), index_(Device::host(), 0, kGrowth) {}

  struct EncodedList : KeyList {
    std::vector<std::uint32_t> order;  // (n), key i of the wire is keys[order[i]]
  };
  // Names distinct keys, (n) on the host, for a batch of this step, and appends what travels to `wire`. `now`: the step
  // of the message that it travels with; a batch is under way if its step is `now` or later. stream: on the host.
  // Waits.
  EncodedList wait_encode_keys(Stream& stream, View<Key const> keys, Clock step, Clock now,
                               std::vector<std::uint8_t>& wire);

  // Appends distinct keys as they go without being named: those that have a slot as its number, the others whole.
  // Waits.
  void wait_encode_known(Stream& stream, View<Key const> keys, std::vector<std::uint8_t>& wire) const;

  static std::size_t bytes_for(std::size_t keys);

 private:
  static constexpr kernels::Growth kGrowth = kernels::Growth::kByMoving;  // one for each other rank and table

  struct SplitKeys {
    std::vector<IndexedKey> known, fresh;  // slots, and keys
  };
  SplitKeys wait_find(Stream& stream, View<Key const> keys) const;
  void wait_remember(Stream& stream, std::vector<IndexedKey> const& fresh, std::vector<std::uint32_t> const& allocated,
                     EncodedList& named);

  SecondChanceSlots slots_;
  kernels::KeyIndex index_;  // a key's number in it is its slot
};

// The owner's end: finds the keys of slots.
class KeyDecoder {
 public:
  explicit KeyDecoder(std::size_t capacity) : slots_(capacity) {}

  struct DecodedList : KeyList {
    std::vector<Key> keys;  // (n)
  };
  // Takes the next list of `count` keys off `wire`. Throws comm::WireError for what no reader sends.
  DecodedList decode(std::string_view& wire, std::uint64_t count, Clock step, Clock now);

  // Takes `count` keys off `wire` that KeyEncoder::wait_encode_known() has written, in the order of the wire. REQUIRES:
  // all lists that it knew have been heard, and no other. Throws likewise.
  std::vector<Key> decode_known(std::string_view& wire, std::uint64_t count) const;

  static std::size_t bytes_for(std::size_t keys) { return keys * (SecondChanceSlots::kBytesEach + sizeof(Key)); }

 private:
  std::vector<Key> keys_of(CodedKeys const& coded) const;

  SecondChanceSlots slots_;
  std::vector<Key> keys_;  // of the slots
};

}  // namespace gpups::cache
