// SPDX-License-Identifier: Apache-2.0
// Parses TOML, with numbers as data files may have them.
#pragma once

#include <toml++/toml.h>
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "trainer/base/finite_number.hpp"

namespace gpups::trainer {

// Replaces the first number of a line that is too small for a double by 0, because the parser rejects it. Returns
// whether there is one. line: from 1.
inline bool round_tiny_number(std::string& text, std::size_t line) {
  constexpr std::string_view kOfNumbers = "0123456789.+-eE";
  std::size_t begin = 0;
  for (; line > 1; --line) begin = text.find('\n', begin) + 1;
  std::size_t const end = std::min(text.find('\n', begin), text.size());
  while ((begin = text.find_first_of(kOfNumbers, begin)) < end) {
    std::size_t const stop = std::min(text.find_first_not_of(kOfNumbers, begin), end);
    std::string const word = text.substr(begin, stop - begin);
    if (word.find_first_of("123456789") < word.find_first_of("eE") && finite_number(word) == 0.0) {
      text.replace(begin, stop - begin, "0.0");
      return true;
    }
    begin = stop;
  }
  return false;
}

// Returns the table. Throws toml::parse_error.
inline toml::table parse_toml(std::string text, std::string const& name) {
  while (true) {
    try {
      return toml::parse(text, name);
    } catch (toml::parse_error const& error) {
      if (!round_tiny_number(text, error.source().begin.line)) throw;
    }
  }
}

}  // namespace gpups::trainer
