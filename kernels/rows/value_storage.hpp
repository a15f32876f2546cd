// SPDX-License-Identifier: Apache-2.0
// The values of the rows of a table, whose data type is known at run time.
#pragma once

#include <cstddef>
#include <variant>

#include "kernels/rows/number_type.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::kernels {

// A RowStorage of any data type.
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
