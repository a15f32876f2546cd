// SPDX-License-Identifier: Apache-2.0
// Rows of numbers whose data type is known at run time: floats, or numbers of 16 bits (half.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/table.hpp"
#include "kernels/base/half.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

using gpups::DataType;

// The data type of numbers of type T.
template <class T>
inline constexpr DataType kNumberType = DataType::kFloat;
template <>
inline constexpr DataType kNumberType<Half> = DataType::kHalf;
template <>
inline constexpr DataType kNumberType<BFloat16> = DataType::kBFloat16;

constexpr std::size_t bytes_of_number(DataType type) { return type == DataType::kFloat ? 4 : 2; }

// Calls f.template operator()<T>() with the C++ type T of `type`.
template <class F>
void with_number(DataType type, F f) {
  switch (type) {
    case DataType::kFloat:
      return f.template operator()<float>();
    case DataType::kHalf:
      return f.template operator()<Half>();
    case DataType::kBFloat16:
      return f.template operator()<BFloat16>();
  }
}

using gpups::row_stride;
// Returns the distance from a row to the next, in numbers. It is a multiple of 64 bytes if a row has more than 32
// bytes, else of 16 bytes. For floats it is row_stride(columns); for other types it is not smaller.
constexpr std::size_t row_stride(std::size_t columns, DataType type) {
  if (type == DataType::kFloat) return row_stride(columns);
  std::size_t const step = columns > 16 ? 32 : 8;
  return (columns + step - 1) / step * step;
}

// A view of rows of any data type, for writing. Padding is zero.
struct WritableRows {
  void* const* chunks = nullptr;  // see Rows; each begins at a cache line
  std::size_t stride = 0;         // numbers of a row; row_stride(dim, type)
  unsigned chunk_bits = 0;        // as in Rows
  DataType type = DataType::kFloat;

  WritableRows() = default;
  template <class T>
  WritableRows(Rows<T> rows)  // NOLINT: implicit on purpose
      : chunks(reinterpret_cast<void* const*>(rows.chunks)),
        stride(rows.stride),
        chunk_bits(rows.chunk_bits),
        type(kNumberType<T>) {}

  // Returns the rows as rows of T. REQUIRES: T is their type.
  template <class T>
  GPUPS_ANY_FN Rows<T> as() const {
    return {reinterpret_cast<T* const*>(chunks), stride, chunk_bits};
  }
};

// The same for reading.
struct TypedRows {
  void const* const* chunks = nullptr;
  std::size_t stride = 0;
  unsigned chunk_bits = 0;
  DataType type = DataType::kFloat;

  TypedRows() = default;
  template <class T>
  TypedRows(Rows<T const> rows)  // NOLINT: implicit on purpose
      : chunks(reinterpret_cast<void const* const*>(rows.chunks)),
        stride(rows.stride),
        chunk_bits(rows.chunk_bits),
        type(kNumberType<T>) {}

  // Returns the rows as rows of T. REQUIRES: T is their type.
  template <class T>
  GPUPS_ANY_FN Rows<T const> as() const {
    return {reinterpret_cast<T const* const*>(chunks), stride, chunk_bits};
  }
};

}  // namespace gpups::kernels
