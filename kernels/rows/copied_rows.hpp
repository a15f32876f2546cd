// SPDX-License-Identifier: Apache-2.0
// The rows that copy_rows() and copy_row_lists() read or write: functors that return the address of row i, or null if
// there is none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/base/nontemporal.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// Returns whether rows of `row_bytes` bytes, the first of which is at `first`, can be copied in words of 16 bytes.
inline bool are_words_of_16(void const* first, std::size_t row_bytes) {
  return reinterpret_cast<std::uintptr_t>(first) % 16 == 0 && row_bytes % 16 == 0;
}

// Row i of a matrix.
template <class T>
struct MatrixRows {
  static constexpr bool kScattered = false;
  MatrixView<T> rows;

  GPUPS_ANY_FN T* operator()(std::size_t i) const { return rows.row(i); }
  bool are_whole_lines() const { return are_lines(rows.data(), rows.stride() * sizeof(T)); }
  bool are_words() const { return are_words_of_16(rows.data(), rows.stride() * sizeof(T)); }
};

// Row positions[i] of a matrix.
template <class T>
struct MatrixRowsAt {
  static constexpr bool kScattered = true;
  MatrixView<T> rows;
  View<std::uint32_t const> positions;

  GPUPS_ANY_FN T* operator()(std::size_t i) const { return rows.row(positions[i]); }
  bool are_whole_lines() const { return are_lines(rows.data(), rows.stride() * sizeof(T)); }
  bool are_words() const { return are_words_of_16(rows.data(), rows.stride() * sizeof(T)); }
};

// Row ids[i] of a table; null if ids[i] is kNoRow.
template <class T>
struct TableRows {
  static constexpr bool kScattered = true;
  Rows<T> rows;
  View<std::uint32_t const> ids;

  GPUPS_ANY_FN T* operator()(std::size_t i) const { return ids[i] == kNoRow ? nullptr : rows.row(ids[i]); }
  // Each chunk begins at the beginning of a cache line.
  bool are_whole_lines() const { return are_lines(nullptr, rows.stride * sizeof(T)); }
  bool are_words() const { return are_words_of_16(nullptr, rows.stride * sizeof(T)); }
};

// The floats of a row: the first `dim` are copied, and zeros are written from there up to `stride`.
struct CopiedRow {
  std::size_t dim, stride;
};

// A list of rows to copy: row from(i) to row to(i) for each i < n for which neither is null.
template <class From, class To>
struct CopiedRows {
  From from;
  To to;
  std::size_t n;
  CopiedRow row;
  bool words;  // rows are copied in words of 16 bytes

  GPUPS_ANY_FN std::size_t words_of(std::size_t floats) const { return words ? floats / 4 : floats; }
};

template <class From, class To>
CopiedRows<From, To> copied_rows(From from, To to, std::size_t n, CopiedRow row) {
  bool const words = row.dim % 4 == 0 && row.stride % 4 == 0 && from.are_words() && to.are_words();
  return {from, to, n, row, words};
}

}  // namespace gpups::kernels
