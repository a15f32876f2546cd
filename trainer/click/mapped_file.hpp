// SPDX-License-Identifier: Apache-2.0
// A file as bytes in memory, of which the system reads those that are used.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace gpups::trainer {

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
