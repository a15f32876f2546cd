// SPDX-License-Identifier: Apache-2.0
// Pieces of PTX text: words, lists, numbers and types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/emulator/ptx/program.hpp"

namespace gpups::emulator {

// Returns the text without white space at its ends.
std::string strip(std::string_view text);
// Returns the stripped pieces between separators that are in no brackets. An empty text has no pieces.
std::vector<std::string> split(std::string_view text, char separator);
// Returns whether the character may be in a name.
bool is_name(char character);
// Returns the length of the name at the beginning of the text; 0 if there is none.
std::size_t name_length(std::string_view text);
inline bool starts_with_word(std::string_view text, std::string_view word) {
  return text.starts_with(word) && (text.size() == word.size() || !is_name(text[word.size()]));
}

// Returns an integer, or the bits of a float such as 0f3F800000; nothing if the text is no number.
std::optional<std::uint64_t> parse_number(std::string_view text);

// Returns the type with this name, such as "u32"; kNone if there is none.
Type type_of(std::string_view name);
int bytes_of(Type type);
inline bool is_float(Type type) { return type == Type::kF32 || type == Type::kF64; }

}  // namespace gpups::emulator
