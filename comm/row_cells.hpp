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
class RowCells {
 public:
  using Word = std::uint64_t;
  // A copy of a cell.
  using Cell = std::vector<Word>;

  RowCells(std::span<std::byte> memory, std::size_t rows, std::size_t row_bytes)
      : words_(reinterpret_cast<Word*>(memory.data())), rows_(rows), row_bytes_(row_bytes) {
    GPUPS_ASSERT(memory.size() >= bytes(rows, row_bytes) &&
                 reinterpret_cast<std::uintptr_t>(memory.data()) % sizeof(Word) == 0);
  }

  static std::size_t cell_bytes(std::size_t row_bytes) { return (kHead + words_of(row_bytes)) * sizeof(Word); }
  static std::size_t bytes(std::size_t rows, std::size_t row_bytes) { return rows * cell_bytes(row_bytes); }

  std::size_t rows() const { return rows_; }
  // Of a row's cell in the memory.
  std::size_t offset(std::size_t row) const { return row * cell_bytes(row_bytes_); }

  // What is to be written into a cell.
  static void make(Cell& cell, std::uint64_t version, void const* row, std::size_t row_bytes) {
    cell.assign(kHead + words_of(row_bytes), 0);
    cell[1] = version;
    std::memcpy(cell.data() + kHead, row, row_bytes);
    cell[0] = check_of(cell);
  }

  // A row as it was written once: its version. Nothing: it is being written, or never was; try again later.
  std::optional<std::uint64_t> read(std::size_t row, void* out, Cell& scratch) const {
    copy(row, scratch);
    if (!is_whole(scratch)) return std::nullopt;
    std::memcpy(out, scratch.data() + kHead, row_bytes_);
    return scratch[1];
  }

  // The cell as it is just now, word by word: perhaps a mixture.
  void copy(std::size_t row, Cell& cell) const {
    std::size_t const words = kHead + words_of(row_bytes_);
    cell.resize(words);
    Word* const from = words_ + row * words;
    for (std::size_t i = 0; i < words; ++i) cell[i] = std::atomic_ref(from[i]).load(std::memory_order_relaxed);
  }
  static bool is_whole(Cell const& cell) { return cell[0] == check_of(cell); }
  static std::uint64_t version(Cell const& cell) { return cell[1]; }
  static void const* row(Cell const& cell) { return cell.data() + kHead; }

 private:
  static constexpr std::size_t kHead = 2;  // words before the row
  static std::size_t words_of(std::size_t row_bytes) { return (row_bytes + sizeof(Word) - 1) / sizeof(Word); }
  static Word check_of(Cell const& cell) {
    return kernels::checksum(cell.data() + 1, (cell.size() - 1) * sizeof(Word));
  }

  Word* words_;
  std::size_t rows_, row_bytes_;
};

}  // namespace gpups::comm
