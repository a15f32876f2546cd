// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/key_dictionary.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/base/assert.hpp"

namespace gpups::cache {

std::size_t KeyEncoder::bytes_for(std::size_t keys) {
  return keys * SecondChanceSlots::kBytesEach + kernels::KeyIndex::bytes_for(keys, kGrowth);
}

std::vector<KeyEncoder::SplitKeys> KeyEncoder::wait_find(Stream& stream, std::span<List const> lists) {
  std::size_t count = 0;
  for (auto const& list : lists) count += list.keys.size();
  std::vector<std::uint32_t> ids(count, kNoSlot);
  std::vector<kernels::KeyIndex::Search> searches;
  std::size_t first = 0;
  for (auto const& list : lists) {
    auto const of_list = View<std::uint32_t>(ids).slice(first, list.keys.size());
    if (list.dictionary->slots_.filled() > 0) searches.push_back({&list.dictionary->index_, list.keys, of_list});
    first += list.keys.size();
  }
  if (!searches.empty()) kernels::KeyIndex::find(stream, searches);

  std::vector<SplitKeys> found;
  first = 0;
  for (auto const& list : lists) {
    found.push_back(split(list.keys, View<std::uint32_t const>(ids).slice(first, list.keys.size())));
    first += list.keys.size();
  }
  return found;
}

// ids: of each key, the slot or kNoSlot.
KeyEncoder::SplitKeys KeyEncoder::split(View<Key const> keys, View<std::uint32_t const> ids) {
  SplitKeys split;
  split.known.reserve(keys.size());
  for (std::uint32_t i = 0; i < keys.size(); ++i) {
    ids[i] == kNoSlot ? split.fresh.push_back({number(keys[i]), i}) : split.known.push_back({ids[i], i});
  }
  return split;
}

void KeyEncoder::wait_encode_known(Stream& stream, View<Key const> keys, std::vector<std::uint8_t>& wire) const {
  std::vector<std::uint32_t> ids(keys.size(), kNoSlot);
  if (slots_.filled() > 0) index_.find(stream, keys, View<std::uint32_t>(ids));
  auto [known, fresh] = split(keys, View<std::uint32_t const>(ids));
  encode_keys(known, fresh, wire);
}

KeyList KeyEncoder::wait_encode_keys(Stream& stream, View<Key const> keys, Clock step, Clock now,
                                     std::vector<std::uint8_t>& wire) {
  List const list{this, keys, step, &wire};
  return std::move(wait_encode_keys(stream, {&list, 1}, now)[0]);
}

// The n-th lists of all dictionaries are encoded together, in the n-th pass. Their bytes are appended at the end, in
// the order of the lists.
std::vector<KeyList> KeyEncoder::wait_encode_keys(Stream& stream, std::span<List const> lists, Clock now) {
  std::map<KeyEncoder const*, std::size_t> lists_of;
  std::vector<std::vector<std::size_t>> passes;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    std::size_t const n = lists_of[lists[i].dictionary]++;
    if (n == passes.size()) passes.emplace_back();
    passes[n].push_back(i);
  }
  std::vector<KeyList> encoded(lists.size());
  std::vector<std::vector<std::uint8_t>> bytes(lists.size());
  for (auto const& pass : passes) {
    std::vector<List> together;
    for (std::size_t const i : pass) {
      together.push_back(lists[i]);
      together.back().wire = &bytes[i];
    }
    auto found = wait_find(stream, together);
    std::vector<NewKeys> added(together.size());
    for (std::size_t k = 0; k < pass.size(); ++k) {
      encoded[pass[k]] = together[k].dictionary->encode(std::move(found[k]), together[k], now, added[k]);
    }
    wait_remember(stream, together, added);
  }
  for (std::size_t i = 0; i < lists.size(); ++i) {
    lists[i].wire->insert(lists[i].wire->end(), bytes[i].begin(), bytes[i].end());
  }
  return encoded;
}

// Encodes a list whose keys have been searched. added: becomes the keys that get slots.
KeyList KeyEncoder::encode(SplitKeys found, List const& list, Clock now, NewKeys& added) {
  auto& [known, fresh] = found;
  encode_keys(known, fresh, *list.wire);
  KeyList encoded;
  encoded.known = known.size();
  encoded.slots.reserve(list.keys.size());
  for (auto const& [slot, index] : known) encoded.slots.push_back(static_cast<std::uint32_t>(slot));
  slots_.touch(encoded.slots, list.step);

  added.slots = slots_.allocate(fresh.size(), list.step, now);
  for (std::size_t i = 0; i < added.slots.size(); ++i) added.keys.push_back(Key{fresh[i].value});
  auto const before = index_.keys();
  for (std::uint32_t const slot : added.slots) {
    if (slot >= index_.ids_end()) break;
    encoded.replaced.push_back({slot, Key{*before.row(slot)}});
  }
  added.replaced = encoded.replaced.size();
  encoded.slots.insert(encoded.slots.end(), added.slots.begin(), added.slots.end());
  encoded.slots.resize(list.keys.size(), kNoSlot);
  return encoded;
}

// Replaces keys in the indices. After the keys of replaced slots are erased, an index gives their numbers to new keys,
// the highest number first, and then the next unused numbers. That is the order of SecondChanceSlots::allocate().
void KeyEncoder::wait_remember(Stream& stream, std::span<List const> lists, std::span<NewKeys const> added) {
  std::size_t count = 0;
  for (auto const& of_list : added) count += of_list.keys.size();
  if (count == 0) return;
  std::vector<std::uint32_t> ids(count, kNoSlot);
  std::vector<kernels::KeyIndex::Erasure> erasures;
  std::vector<kernels::KeyIndex::Insertion> insertions;
  std::size_t first = 0;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    auto const& [keys, slots, replaced] = added[i];
    if (keys.empty()) continue;
    auto& index = lists[i].dictionary->index_;
    if (replaced > 0) erasures.push_back({&index, View<std::uint32_t const>(slots).slice(0, replaced)});
    auto const of_list = View<std::uint32_t>(ids).slice(first, keys.size());
    insertions.push_back({&index, View<Key const>(keys), of_list, keys.size()});
    first += keys.size();
  }
  kernels::KeyIndex::wait_erase_ids(stream, erasures);
  kernels::KeyIndex::wait_insert(stream, insertions);
  auto id = ids.begin();
  for (auto const& [keys, slots, replaced] : added) {
    GPUPS_ASSERT(std::equal(slots.begin(), slots.end(), id));
    id += static_cast<std::ptrdiff_t>(slots.size());
  }
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
