// SPDX-License-Identifier: Apache-2.0
// Which rows are copied: functors that say where row i is, or null where there is none.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/launch.hpp"
#include "kernels/nontemporal.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

// Whether rows of so many bytes, the first of them here, can be moved by words of 16 bytes.
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

// Row ids[i] of a table; null where that is kNoRow.
template <class T>
struct TableRows {
  static constexpr bool kScattered = true;
  Rows<T> rows;
  View<std::uint32_t const> ids;

  GPUPS_ANY_FN T* operator()(std::size_t i) const { return ids[i] == kNoRow ? nullptr : rows.row(ids[i]); }
  // Chunks begin with a line.
  bool are_whole_lines() const { return are_lines(nullptr, rows.stride * sizeof(T)); }
  bool are_words() const { return are_words_of_16(nullptr, rows.stride * sizeof(T)); }
};

// Floats of a row: how many are copied, and up to where zeros follow.
struct CopiedRow {
  std::size_t dim, stride;
};

}  // namespace gpups::kernels
