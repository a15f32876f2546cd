// SPDX-License-Identifier: Apache-2.0
// Click data: labelled samples as columns, in memory or in a mapped file, the same bytes in both.
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

#include "trainer/click/layout.hpp"

namespace gpups::trainer {

class SampleStorage;

// Samples ready to learn from, row by row: n samples of N numbers and C categories.
struct SampleBatch {
  std::size_t samples = 0;             // n
  std::vector<float> labels;           // (n), in [0, 1]
  std::vector<float> numbers;          // (n, N), NaN where missing
  std::vector<std::uint32_t> offsets;  // (n * C + 1): values of category f of sample i begin at offsets[i * C + f];
                                       // empty: one value each
  std::vector<std::uint64_t> values;   // ids, see value_id()
  std::vector<float> weights;          // of values; empty: all are 1
};

// Samples lie in blocks of this many; an order that visits them by whole blocks reads the least.
constexpr std::uint64_t kSampleBlock = 1024;

// A data set. Copies share its bytes. A block is checked at its first use, checksum and contents, and the call that
// uses it throws Error where it is not as it was written; a mapped file must not change while it is open.
class Samples {
 public:
  explicit Samples(std::shared_ptr<SampleStorage const> storage) : storage_(std::move(storage)) {}

  std::uint64_t size() const;
  Layout const& layout() const;
  // Equal data has equal ones, read from text or from a binary file. Reads none of it: it is made of checksums.
  std::uint64_t digest() const;
  // Of the blocks, in memory or in the file.
  std::uint64_t bytes() const;
  // Whether the blocks lie in memory; else the system reads them from their file as they are used.
  bool in_memory() const;

  // Replaces `out` by the samples `indices`, in that order; offsets are there if the layout has a category of many
  // values, weights if it has a weighted one. Any thread. Fast where indices lie in few blocks. Throws Error where they
  // have 2^32 values or more. REQUIRES: each index < size().
  void gather(std::span<std::uint64_t const> indices, SampleBatch& out) const;
  // The same for samples first .. first + count - 1. REQUIRES: first + count <= size().
  void read(std::uint64_t first, std::uint64_t count, SampleBatch& out) const;

  SampleStorage const& storage() const { return *storage_; }

 private:
  std::shared_ptr<SampleStorage const> storage_;
};

struct TextOptions {
  double bad_share_max = 0;                                   // of lines that are no samples
  int threads = 0;                                            // that parse; 0: one on each core
  std::string_view bad_share_setting = "data.bad_share_max";  // what a user sets to allow more, for errors
};

// Reads lines of text, plain or compressed with zstd, into memory. What a user should know is added to `notices`.
// Throws Error, naming file and line, where there is no sample or more lines than allowed are bad.
Samples read_samples_text(std::filesystem::path const& path, Layout const& layout, TextOptions const& options,
                          std::vector<std::string>& notices);

// Maps a file that convert_samples() wrote. Throws Error where it is no such file, or a cut or changed one; of its
// blocks it looks at none.
Samples open_samples(std::filesystem::path const& path);

}  // namespace gpups::trainer
