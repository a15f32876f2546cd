// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/key_coding.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "cache/wire/recent_keys.hpp"
#include "kernels/base/assert.hpp"
#include "kernels/index/indexed_keys.hpp"

namespace gpups::cache {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kOneByte = 0xFF, kTwoBytes = 0xFFFF;
// Each number is written and read as a word.
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

std::uint64_t form_bytes(std::uint64_t keys) { return keys / 4 + (keys % 4 == 0 ? 0 : 1); }

// The head of a list.
struct ListHead {
  std::uint8_t gap_bytes = 1, slot_bytes = 1;
  bool spread = false;

  std::uint8_t coded() const {
    return static_cast<std::uint8_t>((gap_bytes - 1) | (slot_bytes - 1) << 3 | (spread ? 32 : 0));
  }
  static ListHead from(std::uint8_t coded) {
    if (coded >= 64) throw comm::SerializationError("a list of keys in an unknown coding");
    return {static_cast<std::uint8_t>((coded & 7) + 1), static_cast<std::uint8_t>((coded >> 3 & 3) + 1), coded >= 32};
  }
  // Returns the bytes of numbers, by form.
  std::array<std::uint8_t, 4> widths() const {
    return {1, static_cast<std::uint8_t>(spread ? 1 : 2), slot_bytes, gap_bytes};
  }
};

// Returns whether most keys have gaps of more than two bytes.
bool are_spread(View<Key const> keys) {
  std::size_t const n = keys.size(), first = n / 4, last = n - 1 - n / 4;
  return (number(keys[last]) - number(keys[first])) / (last - first + 1) > kTwoBytes;
}

std::uint8_t byte_width(std::uint64_t bits) {
  return static_cast<std::uint8_t>(std::max(1, (static_cast<int>(std::bit_width(bits)) + 7) / 8));
}

// Returns the number at `at`, of which `width` bytes are before `end`.
std::uint64_t read_number(char const* at, char const* end, std::size_t width) {
  std::uint64_t word = 0;
  if (static_cast<std::size_t>(end - at) >= kWordBytes) {
    std::memcpy(&word, at, kWordBytes);
    return word & ~std::uint64_t{0} >> (64 - 8 * width);
  }
  std::memcpy(&word, at, width);
  return word;
}

}  // namespace

std::vector<std::uint32_t> order_by_value(View<Key const> keys) {
  std::vector<kernels::IndexedKey> indexed;
  indexed.reserve(keys.size());
  for (std::uint32_t i = 0; i < keys.size(); ++i) indexed.push_back({number(keys[i]), i});
  kernels::sort_by_value(indexed);
  std::vector<std::uint32_t> order;
  order.reserve(indexed.size());
  for (auto const& [value, index] : indexed) order.push_back(index);
  return order;
}

std::uint64_t key_bytes_max(std::uint64_t keys) { return keys == 0 ? 0 : 1 + form_bytes(keys) + sizeof(Key) * keys; }

std::vector<std::uint32_t> far_keys(View<Key const> keys) {
  if (keys.empty()) return {};
  std::uint64_t const near = are_spread(keys) ? kOneByte : kTwoBytes;
  std::vector<std::uint32_t> far(keys.size());
  std::size_t count = 0;
  std::uint64_t next = 0;
  for (std::uint32_t i = 0; i < keys.size(); ++i) {
    GPUPS_ASSERT(i == 0 || keys[i - 1] < keys[i]);
    far[count] = i;
    count += number(keys[i]) - next > near ? 1 : 0;
    next = number(keys[i]) + 1;
  }
  far.resize(count);
  return far;
}

// New and known keys are mixed, so loops over them have no branches that a processor would predict badly.
void encode_keys(View<Key const> keys, std::span<std::uint32_t const> far, std::span<std::uint32_t const> slots,
                 std::vector<std::uint8_t>& wire) {
  GPUPS_ASSERT(far.size() == slots.size());
  if (keys.empty()) return;
  bool const spread = are_spread(keys);
  // The number of each key, with its form in the highest bits of a byte of its own.
  std::vector<std::uint64_t> numbers(keys.size());
  std::vector<std::uint8_t> forms(form_bytes(keys.size()) * 4, 0);
  std::uint64_t next = 0, gap_bits = 0, slot_bits = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    numbers[i] = number(keys[i]) - next;
    forms[i] = numbers[i] > kOneByte ? 1 : 0;
    next = number(keys[i]) + 1;
  }
  std::uint32_t next_slot = 0;
  for (std::size_t f = 0; f < far.size(); ++f) {
    std::uint32_t const slot = slots[f], distance = slot - next_slot;
    bool const known = slot != kNoSlot, is_near = spread && known && distance <= kOneByte;
    std::uint64_t const gap = numbers[far[f]];
    gap_bits |= known ? 0 : gap;
    slot_bits |= known ? slot : 0;
    numbers[far[f]] = is_near ? distance : known ? slot : gap;
    forms[far[f]] = static_cast<std::uint8_t>(3 - known - is_near);
    next_slot = known ? slot + 1 : next_slot;
  }
  ListHead const head{byte_width(gap_bits), byte_width(slot_bits), spread};
  auto const widths = head.widths();
  std::size_t const before = wire.size();
  wire.resize(before + key_bytes_max(keys.size()) + kWordBytes);
  auto* to = wire.data() + before;
  *to++ = head.coded();
  for (std::size_t i = 0; i < forms.size(); i += 4) {
    *to++ = static_cast<std::uint8_t>(forms[i] | forms[i + 1] << 2 | forms[i + 2] << 4 | forms[i + 3] << 6);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::memcpy(to, &numbers[i], kWordBytes);
    to += widths[forms[i]];
  }
  wire.resize(static_cast<std::size_t>(to - wire.data()));
}

std::string_view take_list(std::string_view& wire, std::uint64_t count) {
  if (count == 0) return {};
  if (wire.empty()) throw comm::SerializationError("a truncated list of keys");
  auto const widths = ListHead::from(static_cast<std::uint8_t>(wire[0])).widths();
  // Each key has at least 1 byte, and its form.
  std::uint64_t const forms = form_bytes(count);
  bool fits = count < wire.size() && forms < wire.size() - count;
  std::uint64_t bytes = 1 + forms + count;
  for (std::uint64_t at = 0; fits && at < forms; at += kWordBytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, wire.data() + 1 + at, std::min<std::uint64_t>(kWordBytes, forms - at));
    if (count - at * 4 < 32) word &= (std::uint64_t{1} << (count - at * 4) * 2) - 1;
    constexpr std::uint64_t kLowBits = 0x5555555555555555;
    auto const low = word & kLowBits, high = word >> 1 & kLowBits;
    bytes += static_cast<std::uint64_t>(std::popcount(low & ~high)) * (widths[1] - 1U) +
             static_cast<std::uint64_t>(std::popcount(high & ~low)) * (widths[2] - 1U) +
             static_cast<std::uint64_t>(std::popcount(low & high)) * (widths[3] - 1U);
  }
  if (!fits || bytes > wire.size()) throw comm::SerializationError("fewer bytes than its keys need");
  auto const list = wire.substr(0, bytes);
  wire.remove_prefix(bytes);
  return list;
}

DecodedKeys decode_keys(std::string_view list, std::uint64_t count, View<Key const> dictionary) {
  if (count == 0) return {};
  auto const head = ListHead::from(static_cast<std::uint8_t>(list[0]));
  auto const widths = head.widths();
  // By form: whether the number is that of a slot; the bits of the values before that are added.
  std::array<std::uint8_t, 4> const is_slot{0, head.spread, 1, 0};
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  std::array<std::uint64_t, 4> const of_next{kAll, head.spread ? 0 : kAll, 0, kAll}, of_next_slot{0, kAll, 0, 0};
  char const* const forms = list.data() + 1;
  char const* const end = list.data() + list.size();
  char const* at = forms + form_bytes(count);
  auto const form_of = [forms](std::uint64_t i) { return static_cast<std::uint8_t>(forms[i / 4]) >> i % 4 * 2 & 3; };
  DecodedKeys decoded{std::vector<Key>(count), std::vector<std::uint32_t>(count), std::vector<Key>(count)};
  std::vector<std::uint64_t> numbers(count);
  std::vector<std::uint32_t> positions(count);  // of known keys
  std::size_t known = 0, fresh = 0;
  std::uint64_t next_slot = 0, slot_max = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto const form = form_of(i);
    numbers[i] = read_number(at, end, widths[form]);
    at += widths[form];
    std::uint64_t const slot = numbers[i] + (next_slot & of_next_slot[form]);
    decoded.known[known] = static_cast<std::uint32_t>(slot);
    positions[known] = static_cast<std::uint32_t>(i);
    known += is_slot[form];
    next_slot = is_slot[form] ? slot + 1 : next_slot;
    slot_max = is_slot[form] ? std::max(slot_max, slot) : slot_max;
  }
  if (known > 0 && slot_max >= dictionary.size()) throw comm::SerializationError("a slot that has no key yet");
  for (std::size_t k = 0; k < known; ++k) numbers[positions[k]] = number(dictionary[decoded.known[k]]);
  std::uint64_t next = 0;
  bool ascend = true;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto const form = form_of(i);
    std::uint64_t const value = numbers[i] + (next & of_next[form]);
    decoded.keys[i] = decoded.fresh[fresh] = Key{value};
    fresh += form == 3 ? 1 : 0;
    ascend = ascend && value >= next && (next != 0 || i == 0);  // after the largest key, `next` is 0
    next = value + 1;
  }
  if (!ascend) throw comm::SerializationError("keys that are not ascending");
  decoded.known.resize(known);
  decoded.fresh.resize(fresh);
  return decoded;
}

}  // namespace gpups::cache
