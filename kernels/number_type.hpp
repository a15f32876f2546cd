// SPDX-License-Identifier: Apache-2.0
// The type of a table's numbers, where it is known when the program runs: rows of floats, or of 16 bits (half.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/half.hpp"
#include "kernels/row_storage.hpp"

namespace gpups::kernels {

enum class NumberType : std::uint8_t { kFloat, kHalf, kBFloat16 };

template <class T>
inline constexpr NumberType kNumberType = NumberType::kFloat;
template <>
inline constexpr NumberType kNumberType<Half> = NumberType::kHalf;
template <>
inline constexpr NumberType kNumberType<BFloat16> = NumberType::kBFloat16;

using gpups::row_stride;
// Numbers from one row to the next: multiples of 64 bytes where a row has as many, of 16 bytes below. For floats the
// same as row_stride(columns).
constexpr std::size_t row_stride(std::size_t columns, NumberType type) {
  std::size_t const bytes = type == NumberType::kFloat ? 4 : 2;
  std::size_t const step = (columns * bytes >= 64 ? 64 : 16) / bytes;
  return (columns + step - 1) / step * step;
}

// Refers to rows of any type. Padding is zero.
struct TypedRows {
  void const* const* chunks = nullptr;  // of kChunkRows rows, each beginning with a line
  std::size_t stride = 0;               // numbers of a row; row_stride(dim, type)
  NumberType type = NumberType::kFloat;

  TypedRows() = default;
  template <class T>
  TypedRows(Rows<T const> rows)  // NOLINT: implicit on purpose
      : chunks(reinterpret_cast<void const* const*>(rows.chunks)), stride(rows.stride), type(kNumberType<T>) {}

  // REQUIRES: T is their type.
  template <class T>
  GPUPS_ANY_FN Rows<T const> as() const {
    return {reinterpret_cast<T const* const*>(chunks), stride};
  }
};

}  // namespace gpups::kernels
