// SPDX-License-Identifier: Apache-2.0
// Characters that look like blanks, or like nothing: names with them differ from names that look the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpups::trainer {

// Returns whether a text has nothing but printable ASCII, tabs and ends of lines. Reads about as fast as memory.
bool is_plain_text(std::string_view text);

// Returns whether a text has a CR before another character than LF. Reads about as fast as memory.
bool has_lone_cr(std::string_view text);

// Returns whether a text has white space, as str.split() of Python knows it: that of ASCII, and wide and no-break
// spaces.
bool has_white_space(std::string_view text);

// Counts such characters in a text: control characters, no-break and wide spaces, zero-width spaces, separators of
// lines other than LF and CR LF, marks of direction. The joiners of emoji and of Arabic and Indic scripts are not
// counted.
class OddCharacters {
 public:
  // Counts those of UTF-8 text that begins with line `line` of a file.
  void check(std::string_view text, std::uint64_t line);
  // Counts a character of a line.
  void add(char32_t character, std::uint64_t line);
  // Adds the counts of a later piece of the same file.
  void append(OddCharacters const& later);
  // Adds a notice if there are any.
  void say(std::string_view path, std::vector<std::string>& notices) const;

 private:
  void check_slowly(std::string_view text, std::size_t begin, std::size_t end, std::uint64_t line);

  std::uint64_t count_ = 0, first_line_ = 0;
  char32_t first_ = 0;
};

}  // namespace gpups::trainer
