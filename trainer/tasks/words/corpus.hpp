// SPDX-License-Identifier: Apache-2.0
// A text in memory: its words, numbered by their frequency, and the number of the word at each position.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/input/dictionary.hpp"

namespace gpups::trainer {

// A text without its rare words. Takes 4 bytes for each position, and about 50 bytes and its text for each word.
struct Corpus {
  static constexpr std::uint32_t kLineEnd = 0xFFFFFFFF;  // in `positions`, after the words of a line

  Dictionary words{"word"};           // the most frequent word first; words of equal frequency in the order of the text
  std::vector<std::uint64_t> counts;  // of each word
  std::vector<std::uint32_t> positions;
  std::uint64_t total = 0;  // the sum of counts
  std::vector<std::string> notices;

  // Returns a digest of words and positions.
  std::uint64_t digest() const;
};

// Reads the files that a setting names, `file` in `folder`: words between blanks and ends of lines. Words with fewer
// than min_count occurrences are left out. While it reads, it takes 4 bytes for each of these too. Throws Error if a
// file cannot be read or is not text, if no words are left, or for a word of more than 64 KiB.
Corpus read_corpus(std::filesystem::path const& folder, std::string const& file, std::uint64_t min_count);

}  // namespace gpups::trainer
