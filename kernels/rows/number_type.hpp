// SPDX-License-Identifier: Apache-2.0
// Numbers whose data type is known at run time: floats, or numbers of 16 bits (half.hpp). Views of rows and of
// contiguous matrices of them, and their storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

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

// Matrices of numbers of any data type in contiguous memory, as they are sent to other ranks. A row of an odd number of
// 16-bit numbers has one more, so that rows consist of whole 32-bit words.

// A view of `rows` rows of `columns` numbers.
struct NumberView {
  std::byte* data = nullptr;
  std::size_t rows = 0, columns = 0;
  DataType type = DataType::kFloat;
  Device device{};

  // Returns the distance from a row to the next, in numbers.
  std::size_t stride() const { return type == DataType::kFloat ? columns : (columns + 1) / 2 * 2; }
  std::size_t bytes() const { return rows * row_bytes(); }
  // REQUIRES: first + count <= rows.
  NumberView slice(std::size_t first, std::size_t count) const {
    return {data + first * row_bytes(), count, columns, type, device};
  }
  // Returns all numbers, padding included. REQUIRES: T is their type.
  template <class T>
  View<T> flat() const {
    return {reinterpret_cast<T*>(data), rows * stride(), device};
  }

 private:
  std::size_t row_bytes() const { return stride() * bytes_of_number(type); }
};

// Owns a matrix of numbers.
class NumberMatrix {
 public:
  NumberMatrix() = default;
  NumberMatrix(Device device, std::size_t rows, std::size_t columns, DataType type)
      : bytes_(device, NumberView{nullptr, rows, columns, type, device}.bytes()),
        rows_(rows),
        columns_(columns),
        type_(type) {}

  NumberView view() const { return {bytes_.data(), rows_, columns_, type_, bytes_.device()}; }

 private:
  Array<std::byte> bytes_;
  std::size_t rows_ = 0, columns_ = 0;
  DataType type_ = DataType::kFloat;
};

// The values of the rows of a table: a RowStorage of any data type.
class ValueStorage {
 public:
  ValueStorage() = default;
  ValueStorage(Device device, std::size_t dim, DataType type) {
    with_number(type, [&]<class T>() { rows_ = RowStorage<T>(device, row_stride(dim, type)); });
  }

  // The functions below are like those of RowStorage.
  void reserve(Stream& stream, std::size_t rows) {
    std::visit([&](auto& storage) { storage.reserve(stream, rows); }, rows_);
  }
  WritableRows ref() const {
    return std::visit([](auto const& storage) { return WritableRows(storage.ref()); }, rows_);
  }
  TypedRows const_ref() const {
    return std::visit([](auto const& storage) { return TypedRows(storage.const_ref()); }, rows_);
  }
  static std::size_t bytes_for(std::size_t rows, std::size_t dim, DataType type) {
    std::size_t bytes = 0;
    with_number(type, [&]<class T>() { bytes = RowStorage<T>::bytes_for(rows, row_stride(dim, type)); });
    return bytes;
  }

 private:
  std::variant<RowStorage<float>, RowStorage<Half>, RowStorage<BFloat16>> rows_;
};

}  // namespace gpups::kernels
