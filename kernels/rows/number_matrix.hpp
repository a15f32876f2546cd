// SPDX-License-Identifier: Apache-2.0
// Matrices of numbers of any data type in contiguous memory, as they are sent to other ranks. A row of an odd number of
// 16-bit numbers has one more, so that rows consist of whole 32-bit words.
#pragma once

#include <cstddef>

#include "kernels/rows/number_type.hpp"

namespace gpups::kernels {

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

}  // namespace gpups::kernels
