// SPDX-License-Identifier: Apache-2.0
// The text of a file, plain or compressed. The first bytes of the file decide which, not its name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

namespace gpups::trainer {

// Text that is read from its start to its end.
class TextSource {
 public:
  virtual ~TextSource() = default;
  // Reads the next `bytes` bytes. Returns how many there were: fewer only at the end. Throws Error if the file cannot
  // be read, or if compressed data is cut or invalid.
  virtual std::size_t read(char* to, std::size_t bytes) = 0;
};

// Opens a file. Throws Error if it cannot be opened, is of a binary kind, or is compressed in another way than zstd. A
// file that zstd cannot decompress in 128 MiB of memory is rejected when it is read.
std::unique_ptr<TextSource> open_text(std::filesystem::path const& path);

}  // namespace gpups::trainer
