// SPDX-License-Identifier: Apache-2.0
// What rows of a table are coded as on the wire.
#pragma once

#include <algorithm>
#include <cstddef>

#include "gpups/table.hpp"
#include "kernels/wire/format.hpp"

namespace gpups::cache {

// REQUIRES: the codec is not kLossless.
constexpr kernels::Format format_of(RowCodec codec) {
  constexpr kernels::Format kAll[] = {kernels::Format::kFloat, kernels::Format::kHalf, kernels::Format::kBFloat16,
                                      kernels::Format::kInt8, kernels::Format::kInt4};
  return kAll[static_cast<int>(codec)];
}

struct CodedShape {
  std::size_t rows, columns;
};

// Rows of fewer columns are short: so many are coded as one that it has 64 numbers, or all if they are fewer, since a
// scale for each would take more bytes than their codes.
inline constexpr std::size_t kShortRow = 32;

// Whether rows share scales with those that lie beside them, so that their order decides bits.
constexpr bool shares_scales(RowCompression const& transfer, std::size_t dim) {
  bool const has_scales = transfer.codec == RowCodec::kInt8 || transfer.codec == RowCodec::kInt4;
  return has_scales && (transfer.top_k == 0 ? dim : transfer.top_k) < kShortRow;
}
inline bool shares_scales(TableOptions const& table) {
  return shares_scales(table.gradient_compression, table.dim) || shares_scales(table.refresh_compression, table.dim);
}

// The shape in which n rows are coded. That of short ones has no padding.
constexpr CodedShape coded_shape(std::size_t n, std::size_t columns) {
  if (columns >= kShortRow || n == 0) return {n, columns};
  std::size_t const numbers = n * columns, folded = std::min<std::size_t>(64, (numbers + 15) / 16 * 16);
  return {(numbers + folded - 1) / folded, folded};
}

}  // namespace gpups::cache
