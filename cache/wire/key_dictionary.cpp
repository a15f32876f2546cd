// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/key_dictionary.hpp"

#include <algorithm>

#include "kernels/assert.hpp"

namespace gpups::cache {

std::size_t KeyEncoder::bytes_for(std::size_t keys) {
  return keys * SecondChanceSlots::kBytesEach + kernels::KeyIndex::bytes_for(keys, kGrowth);
}

KeyEncoder::SplitKeys KeyEncoder::wait_find(Stream& stream, View<Key const> keys) const {
  std::vector<std::uint32_t> ids(keys.size(), kNoSlot);
  if (slots_.filled() > 0) index_.find(stream, keys, View<std::uint32_t>(ids));
  SplitKeys split;
  split.known.reserve(keys.size());
  for (std::uint32_t i = 0; i < keys.size(); ++i) {
    ids[i] == kNoSlot ? split.fresh.push_back({number(keys[i]), i}) : split.known.push_back({ids[i], i});
  }
  return split;
}

void KeyEncoder::wait_encode_known(Stream& stream, View<Key const> keys, std::vector<std::uint8_t>& wire) const {
  auto [known, fresh] = wait_find(stream, keys);
  encode_keys(known, fresh, wire);
}

KeyEncoder::EncodedList KeyEncoder::wait_encode_keys(Stream& stream, View<Key const> keys, Clock step, Clock now,
                                                     std::vector<std::uint8_t>& wire) {
  auto [known, fresh] = wait_find(stream, keys);
  encode_keys(known, fresh, wire);

  EncodedList encoded;
  encoded.known = known.size();
  encoded.slots.reserve(keys.size());
  encoded.order.reserve(keys.size());
  for (auto const& [slot, index] : known) {
    encoded.slots.push_back(static_cast<std::uint32_t>(slot));
    encoded.order.push_back(index);
  }
  for (auto const& [key, index] : fresh) encoded.order.push_back(index);
  slots_.touch(encoded.slots, step);
  auto const allocated = slots_.allocate(fresh.size(), step, now);
  wait_remember(stream, fresh, allocated, encoded);
  encoded.slots.insert(encoded.slots.end(), allocated.begin(), allocated.end());
  encoded.slots.resize(keys.size(), kNoSlot);
  return encoded;
}

// Replaces keys in the index. After the keys of replaced slots are erased, the index gives their numbers to new keys,
// the highest number first, and then the next unused numbers. That is the order of SecondChanceSlots::allocate().
void KeyEncoder::wait_remember(Stream& stream, std::vector<IndexedKey> const& fresh,
                               std::vector<std::uint32_t> const& allocated, EncodedList& encoded) {
  if (allocated.empty()) return;
  auto const replaced =
      std::find_if(allocated.begin(), allocated.end(), [&](auto slot) { return slot >= index_.ids_end(); });
  std::vector<std::uint32_t> const evicted(allocated.begin(), replaced);
  auto const before = index_.keys();
  for (std::uint32_t const slot : evicted) encoded.replaced.push_back({slot, Key{*before.row(slot)}});
  index_.wait_erase_ids(stream, View<std::uint32_t const>(evicted));
  std::vector<Key> keys;
  keys.reserve(allocated.size());
  for (std::size_t i = 0; i < allocated.size(); ++i) keys.push_back(Key{fresh[i].value});
  std::vector<std::uint32_t> ids(allocated.size());
  index_.wait_find_or_insert(stream, View<Key const>(keys), View<std::uint32_t>(ids));
  GPUPS_ASSERT(ids == allocated);
}

std::vector<Key> KeyDecoder::keys_of(CodedKeys const& coded) const {
  std::vector<Key> keys;
  keys.reserve(coded.known.size() + coded.fresh.size());
  for (std::uint32_t const slot : coded.known) keys.push_back(keys_[slot]);
  keys.insert(keys.end(), coded.fresh.begin(), coded.fresh.end());
  return keys;
}

std::vector<Key> KeyDecoder::decode_known(std::string_view& wire, std::uint64_t count) const {
  return keys_of(decode_keys(wire, count, slots_.filled()));
}

KeyDecoder::DecodedList KeyDecoder::decode(std::string_view& wire, std::uint64_t count, Clock step, Clock now) {
  auto coded = decode_keys(wire, count, slots_.filled());
  DecodedList decoded;
  decoded.known = coded.known.size();
  decoded.keys = keys_of(coded);
  slots_.touch(coded.known, step);
  auto const allocated = slots_.allocate(coded.fresh.size(), step, now);
  for (std::size_t i = 0; i < allocated.size(); ++i) {
    Key const key = coded.fresh[i];
    if (allocated[i] < keys_.size()) {
      decoded.replaced.push_back({allocated[i], keys_[allocated[i]]});
      keys_[allocated[i]] = key;
    } else {
      keys_.push_back(key);
    }
  }
  decoded.slots = std::move(coded.known);
  decoded.slots.insert(decoded.slots.end(), allocated.begin(), allocated.end());
  decoded.slots.resize(count, kNoSlot);
  return decoded;
}

}  // namespace gpups::cache
