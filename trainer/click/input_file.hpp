// SPDX-License-Identifier: Apache-2.0
// An open file that is read from begin to end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
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

}  // namespace gpups::trainer
