// SPDX-License-Identifier: Apache-2.0
// A list of keys as it travels: first the slots of those that both ends know, ascending, as gaps; then the others,
// ascending and as gaps where that is shorter, else as they are. A gap is a number of 7 bits per byte, lowest first,
// whose last byte is below 128. A list without keys has no bytes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/wire.hpp"
#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// A key's slot, or the key itself, and where it is in the list that it comes from.
struct IndexedKey {
  std::uint64_t value;
  std::uint32_t index;
};

// Sorts by value. Linear: by digits of 11 bits.
void sort_by_value(std::vector<IndexedKey>& indexed);

// The order of keys by their values, which is the same whatever order they travelled in: keys[order[i]] is the i-th.
std::vector<std::uint32_t> order_by_value(View<Key const> keys);
// Puts them into that order.
void sort_keys(std::vector<Key>& keys);

// Appends the slots of known keys and the values of new ones to `wire`, and sorts both as they were written.
void encode_keys(std::vector<IndexedKey>& known, std::vector<IndexedKey>& fresh, std::vector<std::uint8_t>& wire);

// What encode_keys() was given, in the order of the wire.
struct CodedKeys {
  std::vector<std::uint32_t> known;  // slots, ascending
  std::vector<Key> fresh;
};
// Takes the next list of `count` keys off `wire`. Throws comm::WireError for bytes that are no such list, or name a
// slot of `slots` or more, before memory is taken that they do not justify.
CodedKeys decode_keys(std::string_view& wire, std::uint64_t count, std::size_t slots);

// The most bytes that so many keys take.
std::uint64_t key_bytes_max(std::uint64_t keys);

}  // namespace gpups::cache
