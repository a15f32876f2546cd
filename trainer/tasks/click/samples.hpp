// SPDX-License-Identifier: Apache-2.0
// Click data: labelled samples as columns, in memory or in a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/input/table_layout.hpp"
#include "trainer/tasks/click/layout.hpp"

namespace gpups::trainer {

class SampleStorage;

// Samples as rows, for training: n samples of N numbers and C categories.
struct SampleBatch {
  std::size_t samples = 0;             // n
  std::vector<float> labels;           // (n), in [0, 1]
  std::vector<float> numbers;          // (n, N), NaN where missing
  std::vector<std::uint32_t> offsets;  // (n * C + 1): values of category f of sample i begin at offsets[i * C + f];
                                       // empty: one value each
  std::vector<std::uint64_t> values;   // ids, see value_id()
  std::vector<float> weights;          // of values; empty: all are 1
};

// Samples of a block. Reading samples block by block is fastest.
constexpr std::uint64_t kSampleBlock = 1024;

// A data set. Copies share its bytes. The checksum and the contents of a file's block are checked whenever it is read:
// the call that reads the block throws Error if it was changed since it was written, or since the file was opened. If
// another file gets the name, the first one is still read.
class Samples {
 public:
  explicit Samples(std::shared_ptr<SampleStorage const> storage) : storage_(std::move(storage)) {}

  std::uint64_t size() const;
  Layout const& layout() const;
  // Returns the names that the columns of the layout had in the heading of converted text: of the label, the numbers
  // and the categories. Empty: the file has none, or the samples are of text.
  std::vector<std::string> const& names() const;
  // Returns a digest that is equal for equal data, whether it was text or a binary file. Combines checksums of blocks,
  // and reads no samples.
  std::uint64_t digest() const;
  // Bytes of all blocks, in memory or in the file.
  std::uint64_t bytes() const;
  // Whether the blocks are in memory; else the system reads them from their file when they are used.
  bool in_memory() const;

  // Replaces `out` by the samples `indices`, in that order. `out` has offsets if the layout has a category of many
  // values, and weights if it has a weighted category. Any thread. Fast if the indices are of few blocks. Throws Error
  // if the samples have 2^32 values or more. REQUIRES: each index < size().
  void gather(std::span<std::uint64_t const> indices, SampleBatch& out) const;
  // The same for samples first .. first + count - 1. REQUIRES: first + count <= size().
  void read(std::uint64_t first, std::uint64_t count, SampleBatch& out) const;

  SampleStorage const& storage() const { return *storage_; }

 private:
  std::shared_ptr<SampleStorage const> storage_;
};

// How text is read.
struct TextOptions {
  double bad_share_max = 0;                                   // share of lines that may be bad; these are left out
  int threads = 0;                                            // threads that parse; 0: one for each core
  std::string_view bad_share_setting = "data.bad_share_max";  // the setting that allows more, for error texts
  TableSettings table{};                                      // the columns
  SameColumns* same = nullptr;                                // of other files of the run, or null
};

// Reads the lines of text files, one file after the other, into memory. Adds to `notices` what a user should know.
// Throws Error, with file and line, if there is no sample or if more lines than allowed are bad.
Samples read_samples_text(std::span<std::filesystem::path const> files, Layout const& layout,
                          TextOptions const& options, std::vector<std::string>& notices);
inline Samples read_samples_text(std::filesystem::path const& file, Layout const& layout, TextOptions const& options,
                                 std::vector<std::string>& notices) {
  return read_samples_text(std::span(&file, 1), layout, options, notices);
}

// Opens a file that convert_samples() wrote. Throws Error if the file is of another kind, was cut or changed. Does not
// check blocks.
Samples open_samples(std::filesystem::path const& path);

}  // namespace gpups::trainer
