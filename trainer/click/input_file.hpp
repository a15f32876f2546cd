// SPDX-License-Identifier: Apache-2.0
// Files that are read: from begin to end, or mapped into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace gpups::trainer {

class InputFile {
 public:
  // Throws Error where it cannot be opened, or is a folder.
  explicit InputFile(std::filesystem::path const& path);
  ~InputFile();
  InputFile(InputFile const&) = delete;
  InputFile& operator=(InputFile const&) = delete;

  // As many of the next bytes as there are, up to `bytes`; fewer only at the end.
  std::size_t read(void* to, std::size_t bytes);
  int descriptor() const { return file_; }
  std::string const& path() const { return path_; }

 private:
  std::string path_;
  int file_;
};

// A file as bytes in memory, of which the system reads those that are used.
class MappedFile {
 public:
  // Throws Error where it cannot be opened or mapped. The file must not become shorter while it is mapped.
  explicit MappedFile(std::filesystem::path const& path);
  ~MappedFile();
  MappedFile(MappedFile const&) = delete;
  MappedFile& operator=(MappedFile const&) = delete;

  // At the begin of a page.
  std::span<std::byte const> bytes() const { return bytes_; }
  std::string const& path() const { return path_; }

 private:
  std::string path_;
  std::span<std::byte const> bytes_;
};

}  // namespace gpups::trainer
