// SPDX-License-Identifier: Apache-2.0
// The text of a file, as it is or decompressed: what the file holds decides, not its name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>

namespace gpups::trainer {

class TextSource {
 public:
  virtual ~TextSource() = default;
  // Writes the next bytes to `to`, at most `bytes`; returns how many, 0 at the end. Throws Error where reading fails,
  // or where compressed data is cut or wrong.
  virtual std::size_t read(char* to, std::size_t bytes) = 0;
};

// Throws Error where the file cannot be opened or is not text that can be read. zstd's memory is at most 128 MiB for a
// file, whatever it says of itself.
std::unique_ptr<TextSource> open_text(std::filesystem::path const& path);

}  // namespace gpups::trainer
