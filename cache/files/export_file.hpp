// SPDX-License-Identifier: Apache-2.0
// Files of an export: each is one array, of which every rank writes its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "gpups/store.hpp"

namespace gpups::cache {

// Throws Error if `format` is not an enumerator.
void require_format(ExportFormat format);

// Returns a file name for a table, different for different tables. Bytes other than letters, digits, '-' and '_' become
// %XX.
std::string file_name_of(std::string const& table);

// Returns the header of a file in NumPy's format, version 1.0, padded to a multiple of 64 bytes. type: NumPy's descr,
// such as "<f4". Source: numpy.lib.format.
std::string npy_header(std::string const& type, std::vector<std::uint64_t> const& shape);

// Creates a file with the header and `bytes` zero bytes after it. Throws Error, also if the file exists.
void create_array(std::filesystem::path const& path, std::string const& header, std::uint64_t bytes);

// Writes to an existing file from an offset in bytes, while other ranks may write other parts of it. Throws Error with
// the path and the system's reason. Blocks.
class PartWriter {
 public:
  // Opens the file.
  PartWriter(std::filesystem::path path, std::uint64_t offset);
  ~PartWriter();
  PartWriter(PartWriter const&) = delete;
  PartWriter& operator=(PartWriter const&) = delete;

  // Writes the next bytes.
  void write(void const* data, std::size_t bytes);
  // Flushes the file to the disk and closes it.
  void finish();

 private:
  std::filesystem::path path_;
  std::uint64_t offset_;
  int file_;
};

}  // namespace gpups::cache
