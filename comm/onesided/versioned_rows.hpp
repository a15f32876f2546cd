// SPDX-License-Identifier: Apache-2.0
// Rows in memory that one writes while another reads them, without a lock: a reader gets a row as it was written once,
// or nothing.
//
// A cell is a checksum, the row's version, and the row. Whoever writes may do so in any order, as networks do; a
// mixture of two values has another checksum. So a reader copies the cell and compares. It costs the reader a pass over
// the row (about 20 ns for 256 bytes), and the writer nothing but its own checksum.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "kernels/check.hpp"
#include "kernels/checksum.hpp"

namespace gpups::comm {

// Refers to the memory of (rows) cells. A row has one writer at a time, and any number of readers.
class VersionedRows {
 public:
  using Word = std::uint64_t;
  // A copy of a cell.
  using VersionedRow = std::vector<Word>;

  VersionedRows(std::span<std::byte> memory, std::size_t rows, std::size_t row_bytes)
      : words_(reinterpret_cast<Word*>(memory.data())), rows_(rows), row_bytes_(row_bytes) {
    GPUPS_ASSERT(memory.size() >= bytes(rows, row_bytes) &&
                 reinterpret_cast<std::uintptr_t>(memory.data()) % sizeof(Word) == 0);
  }

  static std::size_t versioned_row_bytes(std::size_t row_bytes) { return (kHead + words_of(row_bytes)) * sizeof(Word); }
  static std::size_t bytes(std::size_t rows, std::size_t row_bytes) { return rows * versioned_row_bytes(row_bytes); }

  std::size_t rows() const { return rows_; }
  // Of a row's cell in the memory.
  std::size_t offset(std::size_t row) const { return row * versioned_row_bytes(row_bytes_); }

  // What is to be written into a cell.
  static void make(VersionedRow& versioned_row, std::uint64_t version, void const* row, std::size_t row_bytes) {
    versioned_row.assign(kHead + words_of(row_bytes), 0);
    versioned_row[1] = version;
    std::memcpy(versioned_row.data() + kHead, row, row_bytes);
    versioned_row[0] = checksum_of(versioned_row);
  }

  // A row as it was written once: its version. Nothing: it is being written, or never was; try again later.
  std::optional<std::uint64_t> read(std::size_t row, void* out, VersionedRow& scratch) const {
    copy(row, scratch);
    if (!is_consistent(scratch)) return std::nullopt;
    std::memcpy(out, scratch.data() + kHead, row_bytes_);
    return scratch[1];
  }

  // The cell as it is just now, word by word: perhaps a mixture.
  void copy(std::size_t row, VersionedRow& versioned_row) const {
    std::size_t const words = kHead + words_of(row_bytes_);
    versioned_row.resize(words);
    Word* const from = words_ + row * words;
    for (std::size_t i = 0; i < words; ++i) versioned_row[i] = std::atomic_ref(from[i]).load(std::memory_order_relaxed);
  }
  static bool is_consistent(VersionedRow const& versioned_row) {
    return versioned_row[0] == checksum_of(versioned_row);
  }
  static std::uint64_t version(VersionedRow const& versioned_row) { return versioned_row[1]; }
  static void const* row(VersionedRow const& versioned_row) { return versioned_row.data() + kHead; }

 private:
  static constexpr std::size_t kHead = 2;  // words before the row
  static std::size_t words_of(std::size_t row_bytes) { return (row_bytes + sizeof(Word) - 1) / sizeof(Word); }
  static Word checksum_of(VersionedRow const& versioned_row) {
    return kernels::checksum(versioned_row.data() + 1, (versioned_row.size() - 1) * sizeof(Word));
  }

  Word* words_;
  std::size_t rows_, row_bytes_;
};

}  // namespace gpups::comm
