// SPDX-License-Identifier: Apache-2.0
// Rows that never move: storage grows by chunks, and a row's number is its place for good.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/array.hpp"

namespace gpups::kernels {

inline constexpr unsigned kChunkBits = 14;
inline constexpr std::size_t kChunkRows = std::size_t{1} << kChunkBits;

// The row number of a key that has no row.
inline constexpr std::uint32_t kNoRow = 0xFFFFFFFF;

// Refers to the rows of one column: what a kernel may do with a RowStorage.
template <class T>
struct Rows {
  T* const* chunks;    // on the storage's device
  std::size_t stride;  // elements of a row

  constexpr T* row(std::uint32_t id) const { return chunks[id >> kChunkBits] + (id & (kChunkRows - 1)) * stride; }
};

// What is in rows that have just been made.
enum class NewRows { kUndefined, kZero };

// Owns one column of a table: `stride` elements for each row.
template <class T>
class RowStorage {
 public:
  RowStorage() = default;
  // capacity_rows: the most rows that there can ever be; costs 8 bytes for each 16,384 of them.
  RowStorage(Device device, std::size_t stride, NewRows new_rows = NewRows::kUndefined,
             std::size_t capacity_rows = std::size_t{1} << 31);

  // Makes room for rows 0 .. rows-1; existing rows stay where they are. Safe beside kernels that use existing rows.
  void reserve(Stream& stream, std::size_t rows);
  Rows<T> ref() const { return {table_.data(), stride_}; }
  Rows<T const> const_ref() const { return {const_cast<T const* const*>(table_.data()), stride_}; }
  std::size_t rows_reserved() const { return chunks_ * kChunkRows; }
  std::size_t bytes() const { return rows_reserved() * stride_ * sizeof(T); }
  // What room for so many rows takes.
  static std::size_t bytes_for(std::size_t rows, std::size_t stride);

 private:
  Device device_{};
  std::size_t stride_ = 0;
  NewRows new_rows_ = NewRows::kUndefined;
  std::vector<Array<T>> blocks_;  // of one chunk or several
  std::size_t chunks_ = 0;
  Array<T*> table_;  // chunk addresses, on the device
};

}  // namespace gpups::kernels
