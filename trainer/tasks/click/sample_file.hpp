// SPDX-License-Identifier: Apache-2.0
// Writes and reads a binary file of click data: its header, layout and index, around the blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trainer/input/input_file.hpp"
#include "trainer/tasks/click/binary_format.hpp"
#include "trainer/tasks/click/layout.hpp"

namespace gpups::trainer {

// What header, layout and index of a file contain.
struct SampleFileFacts {
  Layout layout;
  std::uint64_t samples = 0;
  std::vector<BlockEntry> entries;   // each block ends before the index
  std::vector<std::string> names{};  // of the layout's columns in the heading of the text; empty: it had none
};

// Reads header, layout and index of a file. Throws Error if the file is of another kind, was cut or changed. Does not
// check blocks.
SampleFileFacts read_sample_file(InputFile const& file);

// Writes a file in order, under another name that finish() changes to `path`. Without finish(), the destructor removes
// the file. Throws Error if the file cannot be written.
class SampleFileWriter {
 public:
  SampleFileWriter(std::filesystem::path const& path, Layout const& layout);
  ~SampleFileWriter();
  SampleFileWriter(SampleFileWriter const&) = delete;
  SampleFileWriter& operator=(SampleFileWriter const&) = delete;

  // Appends a block. xxh3: kernels::checksum(block). All blocks but the last are full.
  void add(std::span<std::byte const> block, std::uint64_t xxh3);
  // Writes names, index and header, and renames the file. names: see SampleFileFacts. Returns the size of the file in
  // bytes.
  std::uint64_t finish(std::uint64_t samples, std::vector<std::string> const& names = {});

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
