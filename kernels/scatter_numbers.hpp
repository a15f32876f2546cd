// SPDX-License-Identifier: Apache-2.0
// Writes rows of any data type by number, without conversion: the counterpart of gather_numbers(). Moves twice the
// bytes of the rows, and 4 bytes per row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/number_matrix.hpp"
#include "kernels/scatter.hpp"

namespace gpups::kernels {

struct ScatterNumbers {
  NumberView from;                // (n, dim), of the same type as `rows`
  View<std::uint32_t const> ids;  // (n), distinct numbers of existing rows
  WritableRows rows;              // stride row_stride(dim, type); padding is set to zero
};

// Copies the rows. Two numbers of 16 bits are copied as one float.
inline void scatter_numbers(Stream& stream, ScatterNumbers const& s) {
  std::size_t const numbers = sizeof(float) / bytes_of_number(s.rows.type), stride = s.from.stride() / numbers;
  WritableRows words = s.rows;
  words.stride /= numbers;
  words.type = DataType::kFloat;
  scatter(stream, {.from = {reinterpret_cast<float const*>(s.from.data), s.from.rows, stride, stride, s.from.device},
                   .ids = s.ids,
                   .rows = words,
                   .dim = stride});
}

}  // namespace gpups::kernels
