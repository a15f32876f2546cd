// SPDX-License-Identifier: Apache-2.0
// The id of a category's value: a function of its text alone, the same for every field, run and machine.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace gpups::trainer {

// Text of exactly 8 lower-case hexadecimal digits is the number that it spells, below 2^32. Any other is its XXH3 with
// the top bit set, so that the two never meet.
std::uint64_t value_id(std::string_view text);

// That of empty text: no value was given.
constexpr std::uint64_t kMissingId = 0xAD06800538D394C2U;

// The number that 8 characters spell as lower-case hexadecimal digits; nothing where they are others. All characters
// at once, each in a byte of a word.
inline std::optional<std::uint32_t> hexadecimal_number(char const* eight) {
  static_assert(std::endian::native == std::endian::little, "the first character is the lowest byte");
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  std::uint64_t text;
  std::memcpy(&text, eight, sizeof text);
  std::uint64_t const letters = text >> 6 & kOnes;
  std::uint64_t const digits = (text & 0x0F * kOnes) + 9 * letters;
  // Spelled again, they must be the same characters; 'g' to 'o' would be, as digits above 15.
  std::uint64_t const above_nine = (digits + 6 * kOnes) >> 4 & kOnes;
  if (digits + 0x30 * kOnes + 0x27 * above_nine != text || (digits & 0xF0 * kOnes) != 0) return std::nullopt;
  std::uint64_t const pairs = (digits << 4 | digits >> 8) & 0x00FF00FF00FF00FFU;
  std::uint64_t const fours = (pairs << 8 | pairs >> 16) & 0x0000FFFF0000FFFFU;
  return static_cast<std::uint32_t>(fours << 16 | fours >> 32);
}

}  // namespace gpups::trainer
