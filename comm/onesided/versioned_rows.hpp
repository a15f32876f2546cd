// SPDX-License-Identifier: Apache-2.0
// Rows that one rank writes while others read them, without a lock: a reader gets a consistent copy of a row, or none.
//
// A versioned row consists of a checksum, a version and the row. Its bytes may be written in any order, as networks do;
// a mixture of two values has a wrong checksum. A reader copies the row and verifies the checksum, which costs a pass
// over the row (about 20 ns for 256 bytes). A writer only computes the checksum.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "kernels/base/check.hpp"
#include "kernels/base/checksum.hpp"

namespace gpups::comm {

// Views memory as `rows` versioned rows. Each row has one writer at a time and any number of readers.
class VersionedRows {
 public:
  using Word = std::uint64_t;
  // A copy of a versioned row.
  using VersionedRow = std::vector<Word>;

  VersionedRows(std::span<std::byte> memory, std::size_t rows, std::size_t row_bytes)
      : words_(reinterpret_cast<Word*>(memory.data())), rows_(rows), row_bytes_(row_bytes) {
    GPUPS_ASSERT(memory.size() >= bytes(rows, row_bytes) &&
                 reinterpret_cast<std::uintptr_t>(memory.data()) % sizeof(Word) == 0);
  }

  // Return the size of a versioned row, and of all rows.
  static std::size_t versioned_row_bytes(std::size_t row_bytes) { return (kHead + words_of(row_bytes)) * sizeof(Word); }
  static std::size_t bytes(std::size_t rows, std::size_t row_bytes) { return rows * versioned_row_bytes(row_bytes); }

  std::size_t rows() const { return rows_; }
  // Returns the offset of a versioned row in the memory, in bytes.
  std::size_t offset(std::size_t row) const { return row * versioned_row_bytes(row_bytes_); }

  // Builds a versioned row from a version and a row of `row_bytes` bytes.
  static void make(VersionedRow& versioned_row, std::uint64_t version, void const* row, std::size_t row_bytes) {
    versioned_row.assign(kHead + words_of(row_bytes), 0);
    versioned_row[1] = version;
    std::memcpy(versioned_row.data() + kHead, row, row_bytes);
    versioned_row[0] = checksum_of(versioned_row);
  }

  // Copies the row to `out` and returns its version. Returns nothing if the row is being written or was never written;
  // try again later. scratch: reused memory.
  std::optional<std::uint64_t> read(std::size_t row, void* out, VersionedRow& scratch) const {
    copy(row, scratch);
    if (!is_consistent(scratch)) return std::nullopt;
    std::memcpy(out, scratch.data() + kHead, row_bytes_);
    return scratch[1];
  }

  // Copies the versioned row word by word; the copy may be inconsistent.
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
