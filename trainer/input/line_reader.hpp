// SPDX-License-Identifier: Apache-2.0
// Reads a text file line by line, and counts its bad lines. Reads blocks of 1 MiB, so memory is bounded by the longest
// line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/input/text_source.hpp"

namespace gpups::trainer {

// One thread at a time.
class LineReader {
 public:
  // Opens the file like open_text(), and has its errors.
  explicit LineReader(std::filesystem::path const& path);

  // Sets `line` to the next line, without its end ("\n" or "\r\n"). `line` is valid until the next call. Returns false
  // at the end of the file. Throws Error if reading fails, if a line is longer than 16 MiB, or if it is not text (see
  // require_text()).
  bool next(std::string_view& line);
  // Returns the text that next() will return, as far as it is in memory: the first 1 MiB before the first call, and all
  // of a smaller file.
  std::string_view ahead();
  // Returns whether the last line that next() returned has printable ASCII and tabs only. May be false for such lines.
  bool is_plain() const { return plain_; }
  // Returns the number of the last line that next() returned, from 1.
  std::uint64_t line_number() const { return line_number_; }
  // Returns "path:number" of that line.
  std::string position() const;
  std::string const& path() const { return path_; }

 private:
  void fill();

  std::string path_;
  std::unique_ptr<TextSource> text_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // range of the bytes in buffer_ that next() has not returned
  bool ended_ = false;
  bool plain_ = false;  // buffer_ has printable ASCII, tabs and ends of lines only
  std::uint64_t line_number_ = 0;
};

inline constexpr std::string_view kBlanks = " \t";

// Returns a text without the blanks and tabs at its ends.
std::string_view trim_blanks(std::string_view text);
// Sets `fields` to the parts of a line between blanks and tabs.
void split_at_blanks(std::string_view line, std::vector<std::string_view>& fields);

// The bad lines of a file, or of a piece of it.
struct BadLines {
  std::uint64_t bad = 0, lines = 0;  // number of bad lines, and of all lines
  std::vector<std::string> first;    // the first 3 bad lines at most, each as position and reason

  // Counts a bad line. position: "line 7", for example.
  void add(std::string_view position, std::string_view why);
  // Adds the counts of a later piece of the same file.
  void append(BadLines const& later);
  // Adds a notice if there are bad lines. Throws Error if their share of all lines is more than `share_max`. The error
  // says "a line is `line_is`" and names `setting`, the key that allows more bad lines, if there is one.
  void report(std::filesystem::path const& path, double share_max, std::string_view line_is, std::string_view setting,
              std::vector<std::string>& notices) const;
};

}  // namespace gpups::trainer
