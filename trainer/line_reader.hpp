// SPDX-License-Identifier: Apache-2.0
// Reads a text file line by line, a block at a time: memory is bounded by the longest line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gpups::trainer {

class LineReader {
 public:
  // Throws Error where the file cannot be opened.
  explicit LineReader(std::filesystem::path const& path);
  ~LineReader();
  LineReader(LineReader const&) = delete;
  LineReader& operator=(LineReader const&) = delete;

  // The next line without its end ("\n" or "\r\n") and, in the first line, without a byte order mark; it stays until
  // the next call. False: no more. Throws Error where reading fails or a line is longer than 16 MiB.
  bool next(std::string_view& line);
  // Of the line that next() gave, from 1.
  std::uint64_t line_number() const { return line_number_; }
  // "path:number" of that line.
  std::string position() const;

 private:
  void fill();

  std::string path_;
  int file_ = -1;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of what is read and not given yet
  bool ended_ = false;
  std::uint64_t line_number_ = 0;
};

}  // namespace gpups::trainer
