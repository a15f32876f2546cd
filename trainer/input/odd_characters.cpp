// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/odd_characters.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/base/progress_reporter.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kLongBlock = 1024, kShortBlock = 64, kLeastBlock = 8;  // bytes that are checked at once

// Whether all bytes of a block are printable ASCII, tabs or ends of lines. Compilers make vector code of it.
template <std::size_t kBytes>
bool is_plain_block(char const* at) {
  unsigned char other = 0;
  for (std::size_t i = 0; i < kBytes; ++i) {
    auto const c = static_cast<unsigned char>(at[i]);
    other = static_cast<unsigned char>(
        other | static_cast<unsigned char>((c < 0x20) & (c != '\t') & (c != '\n') & (c != '\r')) |
        static_cast<unsigned char>(c >= 0x7F));
  }
  return other == 0;
}

bool is_plain(char byte) {
  auto const c = static_cast<unsigned char>(byte);
  return (c >= 0x20 && c < 0x7F) || c == '\t' || c == '\n' || c == '\r';
}

bool is_odd(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0xAD || c == 0x1680 || (c >= 0x2000 && c <= 0x200B) ||
         c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202F) || (c >= 0x205F && c <= 0x2064) || c == 0x3000 ||
         c == 0xFEFF;
}

// Returns the character of two or three bytes at `at`, or 0 if the text ends within it or it has four.
char32_t character_at(std::string_view text, std::size_t at) {
  auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  unsigned const first = byte(0);
  if (first < 0xE0 && at + 2 <= text.size()) return (first & 0x1FU) << 6 | (byte(1) & 0x3FU);
  if (first >= 0xE0 && first < 0xF0 && at + 3 <= text.size()) {
    return (first & 0x0FU) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU);
  }
  return 0;
}

}  // namespace

bool is_plain_text(std::string_view text) {
  std::size_t at = 0;
  for (; at + kLongBlock <= text.size(); at += kLongBlock) {
    if (!is_plain_block<kLongBlock>(text.data() + at)) return false;
  }
  return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), is_plain);
}

bool has_lone_cr(std::string_view text) {
  unsigned char found = 0;
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    found = static_cast<unsigned char>(found | static_cast<unsigned char>((text[i] == '\r') & (text[i + 1] != '\n')));
  }
  return found != 0;
}

bool has_white_space(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto const byte = static_cast<unsigned char>(text[i]);
    char32_t const c = byte < 0x80 ? byte : byte < 0xC2 ? 0 : character_at(text, i);
    if (c == 0x20 || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
        (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000) {
      return true;
    }
  }
  return false;
}

void OddCharacters::add(char32_t character, std::uint64_t line) {
  if (count_++ > 0) return;
  first_ = character;
  first_line_ = line;
}

void OddCharacters::check_slowly(std::string_view text, std::size_t begin, std::size_t end, std::uint64_t line) {
  for (std::size_t i = begin; i < end; ++i) {
    auto const byte = static_cast<unsigned char>(text[i]);
    if (is_plain(text[i]) || (byte >= 0x80 && byte < 0xC2)) continue;
    char32_t const character = byte < 0x80 ? byte : character_at(text, i);
    if (character == 0 || !is_odd(character)) continue;
    auto const before = text.begin() + static_cast<std::ptrdiff_t>(i);
    add(character, count_ > 0 ? 0 : line + static_cast<std::uint64_t>(std::count(text.begin(), before, '\n')));
  }
}

void OddCharacters::check(std::string_view text, std::uint64_t line) {
  std::size_t at = 0;
  while (at + kShortBlock <= text.size()) {
    char const* const begin = text.data() + at;
    if (at + kLongBlock <= text.size() && is_plain_block<kLongBlock>(begin)) {
      at += kLongBlock;
      continue;
    }
    for (std::size_t const end = std::min(at + kLongBlock, text.size()); at + kShortBlock <= end; at += kShortBlock) {
      if (!is_plain_block<kShortBlock>(text.data() + at)) check_slowly(text, at, at + kShortBlock, line);
    }
  }
  while (at + kLeastBlock <= text.size() && is_plain_block<kLeastBlock>(text.data() + at)) at += kLeastBlock;
  check_slowly(text, at, text.size(), line);
}

void OddCharacters::append(OddCharacters const& later) {
  if (count_ == 0) {
    *this = later;
  } else {
    count_ += later.count_;
  }
}

void OddCharacters::say(std::string_view path, std::vector<std::string>& notices) const {
  if (count_ == 0) return;
  notices.push_back(
      fmt::format("{} of {} look like blanks or like nothing, such as U+{:04X} in line {}: they are part of names, "
                  "which differ from those that look the same",
                  with_count(count_, "character"), path, static_cast<std::uint32_t>(first_), first_line_));
}

}  // namespace gpups::trainer
