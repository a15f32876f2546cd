// SPDX-License-Identifier: Apache-2.0
// Rows by number, in chunks. Rows stay where they are; or, while there are few, they move to larger memory.
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

// Where rows are while room for more is made.
enum class Growth {
  // Where they were, for good: room grows by whole chunks, and the list of all chunks that there can ever be is made at
  // once, 1 MiB, since kernels and other threads use it meanwhile.
  kInPlace,
  // Elsewhere, until they fill a chunk: room for few rows doubles, and so does the list. For what one thread uses, and
  // of which there are many with few rows in each.
  kByMoving
};

// Owns one column of a table: `stride` elements for each row.
template <class T>
class RowStorage {
 public:
  RowStorage() = default;
  RowStorage(Device device, std::size_t stride, NewRows new_rows = NewRows::kUndefined,
             Growth growth = Growth::kInPlace);

  // Makes room for rows 0 .. rows-1, and keeps what is in them. Waits for `stream` where it makes room.
  // kInPlace: safe beside kernels that use existing rows. kByMoving: REQUIRES that none does, on other streams; what
  // ref() gave before must not be used any more.
  void reserve(Stream& stream, std::size_t rows);
  Rows<T> ref() const { return {list_.data(), stride_}; }
  Rows<T const> const_ref() const { return {const_cast<T const* const*>(list_.data()), stride_}; }
  std::size_t rows_reserved() const { return rows_; }
  // The list of chunks too.
  std::size_t bytes() const { return rows_ * stride_ * sizeof(T) + list_.bytes(); }
  // What room for so many rows takes, likewise.
  static std::size_t bytes_for(std::size_t rows, std::size_t stride, Growth growth = Growth::kInPlace);

 private:
  // Memory for new rows.
  Array<T> make_block(Stream& stream, std::size_t rows) const;
  void move_to_larger_chunk(Stream& stream, std::size_t rows);
  void add_chunks(Stream& stream);
  // Where chunks from number `first` on are. Waits for `stream`.
  void wait_list_chunks(Stream& stream, std::size_t first, std::vector<T*> const& chunks);

  Device device_{};
  std::size_t stride_ = 0;
  NewRows new_rows_ = NewRows::kUndefined;
  Growth growth_ = Growth::kInPlace;
  std::vector<Array<T>> blocks_;  // of one chunk or several, or the first part of a chunk
  std::size_t rows_ = 0;          // that there is room for: whole chunks, or a part of one
  Array<T*> list_;                // chunk addresses, on the device
};

}  // namespace gpups::kernels
