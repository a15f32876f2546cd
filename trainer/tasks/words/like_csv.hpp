// SPDX-License-Identifier: Apache-2.0
// Texts that are CSV or lists, which would be read as words with numbers, commas and quotes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpups::trainer {

// Finds out whether a text is CSV, or lists such as ['a', 'b'], by its first 100,000 words.
class LikeCsv {
 public:
  void add_word(std::string_view word) {
    if (words_ == kWordsMost) return;
    ++words_;
    if (words_of_line_++ == 0) first_ = word;
    last_ = word;
  }
  void end_line();
  // Adds a notice if most lines are fields of which some are in quotes, or if lines below a heading have commas,
  // or if most lines are lists.
  void say(std::string_view path, std::vector<std::string>& notices) const;

 private:
  static constexpr std::uint64_t kWordsMost = 100'000;

  std::uint64_t words_ = 0, lines_ = 0;
  std::uint64_t quoted_ = 0, divided_ = 0, lists_ = 0;  // lines
  std::uint64_t words_of_line_ = 0;
  bool heading_ = false;
  std::string first_{}, last_{};  // words of the line
  std::string shown_{};
};

}  // namespace gpups::trainer
