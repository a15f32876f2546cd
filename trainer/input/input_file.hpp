// SPDX-License-Identifier: Apache-2.0
// Files that are read, or mapped into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace gpups::trainer {

// An open file that is read from its start to its end.
class InputFile {
 public:
  // Throws Error if the file cannot be opened, or is a folder.
  explicit InputFile(std::filesystem::path const& path);
  ~InputFile();
  InputFile(InputFile const&) = delete;
  InputFile& operator=(InputFile const&) = delete;

  // Reads the next `bytes` bytes. Returns how many there were: fewer only at the end of the file. Throws Error if they
  // cannot be read.
  std::size_t read(void* to, std::size_t bytes);
  int descriptor() const { return file_; }
  std::string const& path() const { return path_; }

 private:
  std::string path_;
  int file_;
};

// A file that is mapped into memory. The system reads its pages when they are used.
class MappedFile {
 public:
  // Throws Error if the file cannot be opened or mapped. The file must not become shorter while it is mapped.
  explicit MappedFile(std::filesystem::path const& path);
  ~MappedFile();
  MappedFile(MappedFile const&) = delete;
  MappedFile& operator=(MappedFile const&) = delete;

  // The bytes of the file, which begin at a page of memory.
  std::span<std::byte const> bytes() const { return bytes_; }
  std::string const& path() const { return path_; }

 private:
  std::string path_;
  std::span<std::byte const> bytes_;
};

}  // namespace gpups::trainer
