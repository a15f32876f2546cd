// SPDX-License-Identifier: Apache-2.0
// Files of an export: arrays that several ranks write together, each its own rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "gpups/store.hpp"

namespace gpups::cache {

// Throws Error for a format that there is not.
void require_format(ExportFormat format);

// A name of a file for a table: bytes other than letters, digits, '-' and '_' become %XX, so no two tables share one.
std::string file_name_of(std::string const& table);

// What is before the elements in a file of NumPy's format, version 1.0. type: such as "<f4".
std::string npy_header(std::string const& type, std::vector<std::uint64_t> const& shape);

// Makes a file of this header and so many bytes after it, which are zero. Throws Error.
void create_array(std::filesystem::path const& path, std::string const& header, std::uint64_t bytes);

// Writes to a file that is there, from an offset on. Throws Error, naming the file and the system's reason.
class PartWriter {
 public:
  PartWriter(std::filesystem::path path, std::uint64_t offset);
  ~PartWriter();
  PartWriter(PartWriter const&) = delete;
  PartWriter& operator=(PartWriter const&) = delete;

  void write(void const* data, std::size_t bytes);
  // Flushes to the disk and closes.
  void finish();

 private:
  std::filesystem::path path_;
  std::uint64_t offset_;
  int file_;
};

}  // namespace gpups::cache
