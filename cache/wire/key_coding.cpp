// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/key_coding.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace gpups::cache {
namespace {

// How new keys are encoded.
enum class Coding : std::uint8_t { kPlain, kGaps };

// A list starts with the number of known keys, in 4 bytes, and the coding of the new keys, in 1 byte.
constexpr std::size_t kHeadBytes = 5, kGapBytesMax = 5;
// Keys within a range of 32 bits are sent as gaps of at most 5 bytes.
constexpr std::uint64_t kRangeMax = 0xFFFFFFFF;

std::uint8_t* write_gap(std::uint8_t* to, std::uint64_t gap) {
  for (; gap >= 128; gap >>= 7) *to++ = static_cast<std::uint8_t>(gap | 128);
  *to++ = static_cast<std::uint8_t>(gap);
  return to;
}

// Writes ascending values in [first, first + 2^32) as gaps. Returns the end.
std::uint8_t* write_gaps(std::uint8_t* to, std::span<IndexedKey const> indexed, std::uint64_t first) {
  std::uint64_t next = first;
  for (auto const& [value, index] : indexed) {
    to = write_gap(to, value - next);
    next = value + 1;
  }
  return to;
}

// Reads `count` gaps and calls take(value - first) for each value.
template <class Take>
void read_gaps(std::string_view& wire, std::size_t count, Take take) {
  auto const* at = reinterpret_cast<std::uint8_t const*>(wire.data());
  auto const* const end = at + wire.size();
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t gap = 0;
    std::uint8_t byte = 128;
    for (unsigned shift = 0; byte >= 128; shift += 7) {
      if (at == end || shift >= 7 * kGapBytesMax)
        throw comm::SerializationError("a gap between keys that does not end");
      byte = *at++;
      gap |= std::uint64_t{byte & 127U} << shift;
    }
    if (next + gap > kRangeMax) throw comm::SerializationError("a gap between keys that exceeds the largest key");
    take(next + gap);
    next += gap + 1;
  }
  wire.remove_prefix(wire.size() - static_cast<std::size_t>(end - at));
}

template <class T>
T take(std::string_view& wire) {
  if (wire.size() < sizeof(T)) throw comm::SerializationError("a truncated list of keys");
  T value;
  std::memcpy(&value, wire.data(), sizeof value);
  wire.remove_prefix(sizeof value);
  return value;
}

bool have_short_gaps(std::span<IndexedKey const> keys) {
  if (keys.size() < 2) return false;
  std::uint64_t least = ~std::uint64_t{0}, most = 0;
  for (auto const& [value, index] : keys) least = std::min(least, value), most = std::max(most, value);
  return most - least < kRangeMax;
}

std::vector<IndexedKey> indexed_by_value(View<Key const> keys) {
  std::vector<IndexedKey> indexed;
  indexed.reserve(keys.size());
  for (std::uint32_t i = 0; i < keys.size(); ++i) indexed.push_back({number(keys[i]), i});
  kernels::sort_by_value(indexed);
  return indexed;
}

}  // namespace

std::vector<std::uint32_t> order_by_value(View<Key const> keys) {
  auto const indexed = indexed_by_value(keys);
  std::vector<std::uint32_t> order;
  order.reserve(indexed.size());
  for (auto const& [value, index] : indexed) order.push_back(index);
  return order;
}

void sort_keys(std::vector<Key>& keys) {
  auto const indexed = indexed_by_value(View<Key const>(keys));
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = Key{indexed[i].value};
}

std::uint64_t key_bytes_max(std::uint64_t keys) {
  return keys == 0 ? 0 : kHeadBytes + sizeof(Key) + sizeof(Key) * keys;
}

void encode_keys(std::vector<IndexedKey>& known, std::vector<IndexedKey>& fresh, std::vector<std::uint8_t>& wire) {
  std::size_t const before = wire.size();
  if (known.empty() && fresh.empty()) return;
  kernels::sort_by_value(known);
  bool const gaps = have_short_gaps(fresh);
  wire.resize(before + key_bytes_max(known.size() + fresh.size()));
  std::uint8_t* to = wire.data() + before;
  auto const put = [&to](auto value) {
    std::memcpy(to, &value, sizeof value);
    to += sizeof value;
  };
  put(static_cast<std::uint32_t>(known.size()));
  put(gaps ? Coding::kGaps : Coding::kPlain);
  to = write_gaps(to, known, 0);
  if (gaps) {
    kernels::sort_by_value(fresh);
    put(fresh.front().value);
    to = write_gaps(to, fresh, fresh.front().value);
  } else {
    for (auto const& [value, index] : fresh) put(value);
  }
  wire.resize(static_cast<std::size_t>(to - wire.data()));
}

CodedKeys decode_keys(std::string_view& wire, std::uint64_t count, std::size_t slots) {
  if (count == 0) return {};
  auto const known = take<std::uint32_t>(wire);
  auto const coding = take<std::uint8_t>(wire);
  if (coding > static_cast<std::uint8_t>(Coding::kGaps))
    throw comm::SerializationError("a list of keys in an unknown coding");
  if (known > count) throw comm::SerializationError("more slots than keys");
  bool const gaps = coding == static_cast<std::uint8_t>(Coding::kGaps);
  std::uint64_t const fresh = count - known;
  // A slot or a gap has at least 1 byte.
  if (known > wire.size() || fresh > (wire.size() - known) / (gaps ? 1 : sizeof(Key))) {
    throw comm::SerializationError("fewer bytes than its keys need");
  }
  CodedKeys keys;
  keys.known.reserve(known);
  read_gaps(wire, known, [&](std::uint64_t slot) {
    if (slot >= slots) throw comm::SerializationError("a slot that has no key yet");
    keys.known.push_back(static_cast<std::uint32_t>(slot));
  });
  keys.fresh.reserve(fresh);
  if (gaps && fresh > 0) {
    auto const first = take<std::uint64_t>(wire);
    read_gaps(wire, fresh, [&](std::uint64_t offset) {
      if (first + offset < first) throw comm::SerializationError("a gap between keys that exceeds the largest key");
      keys.fresh.push_back(Key{first + offset});
    });
  }
  for (std::uint64_t i = 0; !gaps && i < fresh; ++i) keys.fresh.push_back(take<Key>(wire));
  return keys;
}

}  // namespace gpups::cache
