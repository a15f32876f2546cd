// SPDX-License-Identifier: Apache-2.0
// The encoding of a list of keys between ranks. A list has: the number of known keys (u32), the coding of the new keys
// (u8), and the slots of known keys, ascending, as gaps. If all new keys are within a range of 32 bits, they follow in
// ascending order: the first key (u64), then gaps. Otherwise they follow as u64 in their given order. A gap is the
// number of skipped values, as a varint: 7 bits per byte, lowest bits first; the last byte is below 128. A list without
// keys has no bytes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/base/serialization.hpp"
#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/index/indexed_keys.hpp"

namespace gpups::cache {

// A key's slot, or the key itself, and the key's index in the list that is encoded.
using kernels::IndexedKey;

// Returns the ascending order of keys on the host: keys[order[i]] is the i-th smallest key.
std::vector<std::uint32_t> order_by_value(View<Key const> keys);
// Sorts keys in ascending order.
void sort_keys(std::vector<Key>& keys);

// Appends the slots of known keys and the values of new keys to `wire`, and brings both lists into the order of `wire`.
void encode_keys(std::vector<IndexedKey>& known, std::vector<IndexedKey>& fresh, std::vector<std::uint8_t>& wire);

// A decoded list, in the order of the wire.
struct CodedKeys {
  std::vector<std::uint32_t> known;  // slots, ascending
  std::vector<Key> fresh;
};
// Decodes a list of `count` keys and removes it from the front of `wire`. slots: number of valid slots. Throws
// comm::SerializationError for invalid bytes and for invalid slots. Allocates no more memory than the bytes can
// justify.
CodedKeys decode_keys(std::string_view& wire, std::uint64_t count, std::size_t slots);

// Returns the maximum size of a list of `keys` keys, in bytes.
std::uint64_t key_bytes_max(std::uint64_t keys);

}  // namespace gpups::cache
