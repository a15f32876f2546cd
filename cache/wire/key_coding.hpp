// SPDX-License-Identifier: Apache-2.0
// The encoding of an ascending list of keys between ranks. A key is sent as its gap, which is the number of values
// between the key before and itself, or as its slot in a key dictionary. A list of n keys has:
//   head (1 byte): bits 0 to 2: bytes of a wide gap, minus 1; bits 3 and 4: bytes of a slot, minus 1; bit 5: the keys
//     are spread
//   forms (2 bits for each key, lowest bits first; (n + 3) / 4 bytes): 0: a gap of 1 byte; 1: a gap of 2 bytes, or, if
//     the keys are spread, the slot's distance from the slot after that of the last known key, in 1 byte; 2: a slot;
//     3: a wide gap, of a key that has no slot
//   the numbers of all keys, little-endian
// A list without keys has no bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "comm/base/serialization.hpp"
#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// Returns the ascending order of keys on the host: keys[order[i]] is the i-th smallest key.
std::vector<std::uint32_t> order_by_value(View<Key const> keys);

// Returns the positions of keys with large gaps, which are sent as slots if they have one. keys: ascending.
std::vector<std::uint32_t> far_keys(View<Key const> keys);
// Appends a list to `wire`. keys: (n), ascending. far: (m), from far_keys(). slots: (m), of these keys, or kNoSlot.
void encode_keys(View<Key const> keys, std::span<std::uint32_t const> far, std::span<std::uint32_t const> slots,
                 std::vector<std::uint8_t>& wire);

// Returns the bytes of a list of `count` keys, and removes them from the front of `wire`. Throws
// comm::SerializationError if there are fewer bytes.
std::string_view take_list(std::string_view& wire, std::uint64_t count);

struct DecodedKeys {
  std::vector<Key> keys;             // (count), ascending
  std::vector<std::uint32_t> known;  // the slots that the list has
  std::vector<Key> fresh;            // the keys that were sent as wide gaps, ascending
};
// Decodes a list. list: from take_list() with this `count`. dictionary: the keys by slot. Throws
// comm::SerializationError for invalid bytes. Allocates no more memory than the bytes can justify.
DecodedKeys decode_keys(std::string_view list, std::uint64_t count, View<Key const> dictionary);

// Returns the maximum size of a list of `keys` keys, in bytes.
std::uint64_t key_bytes_max(std::uint64_t keys);

}  // namespace gpups::cache
