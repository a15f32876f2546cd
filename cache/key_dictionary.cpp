// SPDX-License-Identifier: Apache-2.0
#include "cache/key_dictionary.hpp"

#include <algorithm>

#include "kernels/assert.hpp"

namespace gpups::cache {

std::size_t NamedKeys::bytes_for(std::size_t keys) {
  return keys * KeySlots::kBytesEach + kernels::KeyIndex::bytes_for(keys, kGrowth);
}

NamedKeys::Places NamedKeys::wait_find(Stream& stream, View<Key const> keys) const {
  std::vector<std::uint32_t> ids(keys.size(), kNoSlot);
  if (slots_.filled() > 0) index_.find(stream, keys, View<std::uint32_t>(ids));
  Places places;
  places.known.reserve(keys.size());
  for (std::uint32_t i = 0; i < keys.size(); ++i) {
    ids[i] == kNoSlot ? places.fresh.push_back({number(keys[i]), i}) : places.known.push_back({ids[i], i});
  }
  return places;
}

void NamedKeys::wait_list(Stream& stream, View<Key const> keys, std::vector<std::uint8_t>& wire) const {
  auto [known, fresh] = wait_find(stream, keys);
  encode_keys(known, fresh, wire);
}

NamedKeys::Named NamedKeys::wait_name(Stream& stream, View<Key const> keys, Clock step, Clock now,
                                      std::vector<std::uint8_t>& wire) {
  auto [known, fresh] = wait_find(stream, keys);
  encode_keys(known, fresh, wire);

  Named named;
  named.known = known.size();
  named.slots.reserve(keys.size());
  named.order.reserve(keys.size());
  for (auto const& [slot, place] : known) {
    named.slots.push_back(static_cast<std::uint32_t>(slot));
    named.order.push_back(place);
  }
  for (auto const& [key, place] : fresh) named.order.push_back(place);
  slots_.name(named.slots, step);
  auto const given = slots_.give(fresh.size(), step, now);
  wait_remember(stream, fresh, given, named);
  named.slots.insert(named.slots.end(), given.begin(), given.end());
  named.slots.resize(keys.size(), kNoSlot);
  return named;
}

// The index has lost the keys of the slots that are given anew, and hands their numbers out again: the highest first,
// then the next, which is the order of KeySlots::give().
void NamedKeys::wait_remember(Stream& stream, std::vector<KeyPlace> const& fresh,
                              std::vector<std::uint32_t> const& given, Named& named) {
  if (given.empty()) return;
  auto const replaced = std::find_if(given.begin(), given.end(), [&](auto slot) { return slot >= index_.ids_end(); });
  std::vector<std::uint32_t> const gone(given.begin(), replaced);
  auto const before = index_.keys();
  for (std::uint32_t const slot : gone) named.replaced.push_back({slot, Key{*before.row(slot)}});
  index_.wait_erase_ids(stream, View<std::uint32_t const>(gone));
  std::vector<Key> keys;
  keys.reserve(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) keys.push_back(Key{fresh[i].value});
  std::vector<std::uint32_t> ids(given.size());
  index_.wait_find_or_insert(stream, View<Key const>(keys), View<std::uint32_t>(ids));
  GPUPS_ASSERT(ids == given);
}

std::vector<Key> HeardKeys::keys_of(CodedKeys const& coded) const {
  std::vector<Key> keys;
  keys.reserve(coded.known.size() + coded.fresh.size());
  for (std::uint32_t const slot : coded.known) keys.push_back(keys_[slot]);
  keys.insert(keys.end(), coded.fresh.begin(), coded.fresh.end());
  return keys;
}

std::vector<Key> HeardKeys::take_list(std::string_view& wire, std::uint64_t count) const {
  return keys_of(decode_keys(wire, count, slots_.filled()));
}

HeardKeys::Heard HeardKeys::hear(std::string_view& wire, std::uint64_t count, Clock step, Clock now) {
  auto coded = decode_keys(wire, count, slots_.filled());
  Heard heard;
  heard.known = coded.known.size();
  heard.keys = keys_of(coded);
  slots_.name(coded.known, step);
  auto const given = slots_.give(coded.fresh.size(), step, now);
  for (std::size_t i = 0; i < given.size(); ++i) {
    Key const key = coded.fresh[i];
    if (given[i] < keys_.size()) {
      heard.replaced.push_back({given[i], keys_[given[i]]});
      keys_[given[i]] = key;
    } else {
      keys_.push_back(key);
    }
  }
  heard.slots = std::move(coded.known);
  heard.slots.insert(heard.slots.end(), given.begin(), given.end());
  heard.slots.resize(count, kNoSlot);
  return heard;
}

}  // namespace gpups::cache
