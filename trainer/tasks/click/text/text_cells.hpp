// SPDX-License-Identifier: Apache-2.0
// The cells of a line of click data: where a cell ends, and the label, the number or the ids of values in its text.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/tasks/click/layout.hpp"

namespace gpups::trainer {

// The number of an empty cell.
constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

// Returns the id of a category's value: a function of its text alone, the same for every category, run and machine. The
// id of 8 lower-case hexadecimal digits is the number that they spell, below 2^32. The id of any other text is its XXH3
// with the top bit set, so that the two never collide.
std::uint64_t value_id(std::string_view text);

// The id of empty text, the value of an empty cell.
constexpr std::uint64_t kMissingId = 0xAD06800538D394C2U;

// Returns the number that 8 lower-case hexadecimal digits spell, or nothing if a character is not a digit. Converts all
// characters at once, each in a byte of a word.
inline std::optional<std::uint32_t> hexadecimal_number(char const* eight) {
  static_assert(std::endian::native == std::endian::little, "the first character is the lowest byte");
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  std::uint64_t text;
  std::memcpy(&text, eight, sizeof text);
  std::uint64_t const letters = text >> 6 & kOnes;
  std::uint64_t const digits = (text & 0x0F * kOnes) + 9 * letters;
  // Converted back, the digits must give the same text. This is also true of 'g' to 'o', whose digits are above 15.
  std::uint64_t const above_nine = (digits + 6 * kOnes) >> 4 & kOnes;
  if (digits + 0x30 * kOnes + 0x27 * above_nine != text || (digits & 0xF0 * kOnes) != 0) return std::nullopt;
  std::uint64_t const pairs = (digits << 4 | digits >> 8) & 0x00FF00FF00FF00FFU;
  std::uint64_t const fours = (pairs << 8 | pairs >> 16) & 0x0000FFFF0000FFFFU;
  return static_cast<std::uint32_t>(fours << 16 | fours >> 32);
}

// Returns the first '\t' or '\n' at or after `at`. REQUIRES: there is one, and 8 bytes after it can be read.
char const* end_of_cell(char const* at);

// The functions below read a cell. Each returns what is wrong with the cell, in words that follow "the line", or an
// empty text.
std::string read_label(std::string_view cell, float& label);
std::string read_number(std::string_view cell, std::string_view column, float& number);
// Appends ids to `values` and, if not null, as many weights to `weights`.
std::string read_values(std::string_view cell, CategoryField const& field, std::vector<std::uint64_t>& values,
                        std::vector<float>* weights);

}  // namespace gpups::trainer
