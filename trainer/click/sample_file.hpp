// SPDX-License-Identifier: Apache-2.0
// The parts of a binary file of click data that lie around its blocks, written and read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trainer/click/binary_format.hpp"
#include "trainer/click/layout.hpp"

namespace gpups::trainer {

// What a file says of itself.
struct SampleFileFacts {
  Layout layout;
  std::uint64_t samples = 0;
  std::span<BlockEntry const> entries;  // in the file's bytes; each block is before the index
};

// Throws Error, naming `path`, where the bytes are not all of a file. Does not look at blocks. REQUIRES: file is
// aligned to 8.
SampleFileFacts read_sample_file(std::span<std::byte const> file, std::string const& path);

// Writes a file from begin to end: beside `path`, and renamed into place by finish(). Where that is not called nothing
// is left. Throws Error where the file cannot be written.
class SampleFileWriter {
 public:
  SampleFileWriter(std::filesystem::path const& path, Layout const& layout);
  ~SampleFileWriter();
  SampleFileWriter(SampleFileWriter const&) = delete;
  SampleFileWriter& operator=(SampleFileWriter const&) = delete;

  // `xxh3` is kernels::checksum(block). All blocks but the last are full.
  void add(std::span<std::byte const> block, std::uint64_t xxh3);
  // The file's size in bytes.
  std::uint64_t finish(std::uint64_t samples);

 private:
  void write(void const* data, std::size_t bytes);
  void align();
  [[noreturn]] void fail(char const* doing) const;

  std::filesystem::path path_, beside_;
  std::string layout_;  // as text
  int file_ = -1;
  std::uint64_t written_ = 0;
  std::vector<BlockEntry> entries_;
};

}  // namespace gpups::trainer
