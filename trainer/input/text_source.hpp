// SPDX-License-Identifier: Apache-2.0
// Text files: opening, decompression, and what is not text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace gpups::trainer {

// Text that is read from its start to its end. One thread at a time.
class TextSource {
 public:
  virtual ~TextSource() = default;
  // Reads the next `bytes` bytes. Returns how many there were: fewer only at the end. Throws Error if the file cannot
  // be read, has changed since it was opened, or if compressed data is cut or invalid.
  virtual std::size_t read(char* to, std::size_t bytes) = 0;
};

// Opens a text file, plain or compressed with gzip or zstd: its first bytes decide which, not its name. Leaves out a
// UTF-8 byte order mark. Throws Error if the file cannot be opened, or if its first bytes are those of another
// compression, a binary format or UTF-16. A file that zstd cannot decompress in 128 MiB of memory is rejected when it
// is read, and so is text whose lines end with "\r" alone, or in which a line after the first begins with a mark.
std::unique_ptr<TextSource> open_text(std::filesystem::path const& path);

// Returns the index of the first byte that is not part of UTF-8 or is 0, or npos.
std::size_t find_no_text(std::string_view text);

// Throws Error, with the number of the line, if the text has a byte that is 0 or not part of UTF-8. The text begins
// with line `first_line` of the file `path`, and ends between two characters.
void require_text(std::string_view text, std::string_view path, std::uint64_t first_line);

}  // namespace gpups::trainer
