// SPDX-License-Identifier: Apache-2.0
// Storage of rows by number, in chunks. Rows never move; or, with Growth::kByMoving, they move to larger memory while
// there are few.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/array.hpp"

namespace gpups::kernels {

// A chunk has kChunkRows rows, or fewer if these had more than 32 MiB: a table of few wide rows would reserve memory
// for many.
inline constexpr unsigned kChunkBits = 14;
inline constexpr std::size_t kChunkRows = std::size_t{1} << kChunkBits;

// Returns the bits of a row's number that are its place in its chunk.
constexpr unsigned chunk_bits_for(std::size_t row_bytes) {
  constexpr int kBytesMaxBits = 25;
  int const row_bits = std::bit_width(row_bytes > 0 ? row_bytes - 1 : 0);
  return static_cast<unsigned>(std::clamp(kBytesMaxBits - row_bits, 0, static_cast<int>(kChunkBits)));
}

// The row number of a key that has no row.
inline constexpr std::uint32_t kNoRow = 0xFFFFFFFF;

// A view of a RowStorage, for kernels.
template <class T>
struct Rows {
  T* const* chunks;    // on the storage's device
  std::size_t stride;  // elements of a row
  unsigned chunk_bits = chunk_bits_for(stride * sizeof(T));

  constexpr std::size_t chunk_rows() const { return std::size_t{1} << chunk_bits; }
  constexpr T* row(std::uint32_t id) const { return chunks[id >> chunk_bits] + (id & (chunk_rows() - 1)) * stride; }
};

// The contents of new rows.
enum class NewRows { kUndefined, kZero };

// How a storage makes room for more rows.
enum class Growth {
  // Rows never move. Room grows by whole chunks, and the list of chunks has its final size of 1 MiB from the beginning,
  // because kernels and other threads use it while room is made.
  kInPlace,
  // Rows move until they fill a chunk: room for few rows doubles, and so does the list of chunks. For storage that one
  // thread uses, and of which there is much with few rows each.
  kByMoving
};

// Owns one kind of data of all rows of a table, such as their values or their lifecycles: `stride` elements for each
// row.
template <class T>
class RowStorage {
 public:
  RowStorage() = default;
  RowStorage(Device device, std::size_t stride, NewRows new_rows = NewRows::kUndefined,
             Growth growth = Growth::kInPlace);

  // Makes room for rows 0 .. rows - 1, and keeps their contents. Waits for `stream` if it makes room. kInPlace: kernels
  // may use existing rows meanwhile. kByMoving: REQUIRES: no kernel of another stream uses rows meanwhile; earlier
  // results of ref() become invalid.
  void reserve(Stream& stream, std::size_t rows);
  Rows<T> ref() const { return {list_.data(), stride_}; }
  Rows<T const> const_ref() const { return {const_cast<T const* const*>(list_.data()), stride_}; }
  std::size_t rows_reserved() const { return rows_; }
  // Returns the bytes of rows and of the list of chunks.
  std::size_t bytes() const { return rows_ * stride_ * sizeof(T) + list_.bytes(); }
  // Returns the bytes of a storage with room for `rows` rows, the list of chunks included.
  static std::size_t bytes_for(std::size_t rows, std::size_t stride, Growth growth = Growth::kInPlace);

 private:
  // Allocates memory for new rows.
  Array<T> make_block(Stream& stream, std::size_t rows) const;
  void move_to_larger_chunk(Stream& stream, std::size_t rows);
  void add_chunks(Stream& stream);
  // Writes the addresses of chunks to the list, from number `first` on. Waits for `stream`.
  void wait_list_chunks(Stream& stream, std::size_t first, std::vector<T*> const& chunks);

  Device device_{};
  std::size_t stride_ = 0;
  NewRows new_rows_ = NewRows::kUndefined;
  Growth growth_ = Growth::kInPlace;
  std::vector<Array<T>> blocks_;  // each is one or more chunks, or the first part of a chunk
  std::size_t rows_ = 0;          // rows that there is room for: whole chunks, or a part of one
  Array<T*> list_;                // chunk addresses, on the device
};

}  // namespace gpups::kernels
