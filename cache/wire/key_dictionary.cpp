// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/key_dictionary.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>

#include "kernels/base/hash.hpp"
#include "kernels/runtime/arena.hpp"

namespace gpups::cache {
namespace {

// The distance, in keys, at which entries of the table are prefetched, and then keys.
constexpr std::size_t kKeysAhead = 16;

// Bits of a hash that differ between keys of one home and one place of the table.
std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 16); }

std::size_t table_size(std::size_t keys) { return keys == 0 ? 0 : std::bit_ceil(keys + keys / 2 + 1); }

// Calls code(i) for each list i: for those of one dictionary in order, and for different dictionaries in parallel.
// keys: in all lists.
template <class List>
void code_lists(Stream& host, std::span<List const> lists, std::uint64_t keys,
                kernels::FunctionRef<void(std::size_t)> code) {
  // Waking another thread takes longer than a little work.
  constexpr std::uint64_t kFewKeys = 4096;
  if (keys <= kFewKeys || host.threads() == 1) {
    for (std::size_t i = 0; i < lists.size(); ++i) code(i);
    return;
  }
  std::vector<std::vector<std::size_t>> groups;
  std::map<void const*, std::size_t> group_of;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    bool const is_new = lists[i].dictionary == nullptr || group_of.emplace(lists[i].dictionary, groups.size()).second;
    if (is_new) groups.emplace_back();
    groups[lists[i].dictionary == nullptr ? groups.size() - 1 : group_of[lists[i].dictionary]].push_back(i);
  }
  kernels::parallel_for(host, groups.size(), [&](Stream&, std::size_t g) {
    for (std::size_t const i : groups[g]) code(i);
  });
}

}  // namespace

std::size_t KeyEncoder::bytes_for(std::size_t keys) {
  return keys * RecentKeys::kBytesEach + table_size(keys) * sizeof(std::uint32_t);
}

std::size_t KeyEncoder::bytes() const {
  return recent_.reserved() * RecentKeys::kBytesEach + table_.capacity() * sizeof(std::uint32_t);
}

void KeyEncoder::encode(Stream& host, std::span<List const> lists) {
  std::uint64_t keys = 0;
  for (auto const& list : lists) keys += list.keys.size();
  std::vector<std::vector<std::uint8_t>> bytes(lists.size());
  code_lists(host, lists, keys, [&](std::size_t i) {
    auto const& [dictionary, of_list, wire] = lists[i];
    dictionary == nullptr ? KeyEncoder(0).encode(of_list, bytes[i]) : dictionary->encode(of_list, bytes[i]);
  });
  for (std::size_t i = 0; i < lists.size(); ++i) {
    lists[i].wire->insert(lists[i].wire->end(), bytes[i].begin(), bytes[i].end());
  }
}

void KeyEncoder::encode(View<Key const> keys, std::vector<std::uint8_t>& wire) {
  if (keys.empty()) return;  // an empty list is not sent to all homes, so it must change nothing
  auto const far = far_keys(keys);
  recent_.reserve(far.size());
  if (table_size(recent_.reserved()) != table_.size()) rebuild();
  std::vector<std::uint32_t> slots(far.size());
  find(keys, far, [&](std::size_t f, Entry found) {
    slots[f] = found.slot;
    if (found.slot != kNoSlot) {
      recent_.use(found.slot);
    } else if (recent_.add(keys[far[f]])) {
      table_[found.place] = found.tag | static_cast<std::uint32_t>(recent_.keys().size() - 1);
    }
  });
  encode_keys(keys, far, slots, wire);
  if (recent_.end_list(far.size())) rebuild();
}

void KeyEncoder::encode_known(View<Key const> keys, std::vector<std::uint8_t>& wire) const {
  auto const far = far_keys(keys);
  std::vector<std::uint32_t> slots(far.size());
  find(keys, far, [&](std::size_t f, Entry found) { slots[f] = found.slot; });
  encode_keys(keys, far, slots, wire);
}

// Calls take(i, entry) for each of some positions, in order, with the entry of keys[positions[i]] or the one that it
// can get. Entries are prefetched, and then keys.
template <class Take>
void KeyEncoder::find(View<Key const> keys, std::span<std::uint32_t const> positions, Take take) const {
  std::size_t const n = positions.size();
  auto const mask = static_cast<std::uint32_t>(table_.size() - 1);
  std::array<std::uint64_t, 2 * kKeysAhead> hashes;  // of the last keys
  for (std::size_t i = 0; i < n && table_.empty(); ++i) take(i, Entry{kNoSlot});
  for (std::size_t i = 0; i < n + hashes.size() && !table_.empty(); ++i) {
    auto& hash = hashes[i % hashes.size()];
    if (i >= hashes.size()) {
      Key const key = keys[positions[i - hashes.size()]];
      std::uint32_t const tag = tag_of(hash) & ~mask;
      std::uint64_t place = hash & mask;
      std::uint32_t entry = table_[place];
      while (entry != kNoSlot && ((entry & ~mask) != tag || recent_.keys()[entry & mask] != key)) {
        place = (place + 1) & mask;
        entry = table_[place];
      }
      take(i - hashes.size(), Entry{entry == kNoSlot ? kNoSlot : entry & mask, tag, place});
    }
    if (i < n) {
      hash = kernels::hash_of(keys[positions[i]]);
      __builtin_prefetch(&table_[hash & mask], 1);
    }
    if (i < kKeysAhead || i - kKeysAhead >= n) continue;
    std::uint64_t const half_way = hashes[(i - kKeysAhead) % hashes.size()];
    std::uint32_t const entry = table_[half_way & mask];
    recent_.prefetch(((entry ^ tag_of(half_way)) & ~mask) == 0 ? entry & mask : 0);
  }
}

// Inserts all keys into a table for the number of keys for which there is memory.
void KeyEncoder::rebuild() {
  std::size_t const size = table_size(recent_.reserved());
  if (size != table_.size()) table_ = std::vector<std::uint32_t>();  // frees its memory
  table_.assign(size, kNoSlot);
  auto const keys = recent_.keys();
  auto const mask = static_cast<std::uint32_t>(size - 1);
  for (std::size_t slot = 0; slot < keys.size(); ++slot) {
    std::uint64_t const hash = kernels::hash_of(keys[slot]);
    std::uint64_t place = hash;
    while (table_[place & mask] != kNoSlot) ++place;
    table_[place & mask] = (tag_of(hash) & ~mask) | static_cast<std::uint32_t>(slot);
  }
}

std::vector<std::vector<Key>> KeyDecoder::decode(Stream& host, std::span<List const> lists, std::string_view& wire) {
  std::uint64_t keys = 0;
  std::vector<std::string_view> bytes;
  for (auto const& list : lists) {
    bytes.push_back(take_list(wire, list.count));
    keys += list.count;
  }
  std::vector<std::vector<Key>> decoded(lists.size());
  code_lists(host, lists, keys, [&](std::size_t i) {
    auto const& [dictionary, count] = lists[i];
    decoded[i] = dictionary == nullptr ? KeyDecoder(0).add(bytes[i], count) : dictionary->add(bytes[i], count);
  });
  return decoded;
}

std::vector<Key> KeyDecoder::add(std::string_view list, std::uint64_t count) {
  if (count == 0) return {};
  auto decoded = decode_keys(list, count, recent_.keys());
  recent_.reserve(decoded.fresh.size());
  for (std::uint32_t const slot : decoded.known) recent_.use(slot);
  for (Key const key : decoded.fresh) recent_.add(key);
  recent_.end_list(decoded.known.size() + decoded.fresh.size());
  return std::move(decoded.keys);
}

}  // namespace gpups::cache
