// SPDX-License-Identifier: Apache-2.0
// Copies rows of any data type by number, without conversion. Moves twice the bytes of `out`, and 4 bytes per row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gather.hpp"
#include "kernels/number_matrix.hpp"

namespace gpups::kernels {

struct GatherNumbers {
  TypedRows rows;                 // stride row_stride(dim, type)
  View<std::uint32_t const> ids;  // (n), numbers of existing rows
  NumberView out;                 // (n, dim), of the same type
};

// Copies the rows. Two numbers of 16 bits are copied as one float.
inline void gather_numbers(Stream& stream, GatherNumbers const& g) {
  std::size_t const numbers = sizeof(float) / bytes_of_number(g.rows.type), stride = g.out.stride() / numbers;
  gather(stream, {.rows = {reinterpret_cast<float const* const*>(g.rows.chunks), g.rows.stride / numbers},
                  .ids = g.ids,
                  .out = {reinterpret_cast<float*>(g.out.data), g.out.rows, stride, stride, g.out.device}});
}

}  // namespace gpups::kernels
