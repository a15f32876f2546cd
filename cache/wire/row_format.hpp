// SPDX-License-Identifier: Apache-2.0
// The shape and the number format in which rows of a table are encoded.
#pragma once

#include <algorithm>
#include <cstddef>

#include "gpups/table.hpp"
#include "kernels/codec/format.hpp"

namespace gpups::cache {

// Returns the number format of a codec. REQUIRES: the codec is not kLossless.
constexpr kernels::Format format_of(RowCodec codec) {
  constexpr kernels::Format kAll[] = {kernels::Format::kFloat, kernels::Format::kHalf, kernels::Format::kBFloat16,
                                      kernels::Format::kInt8, kernels::Format::kInt4};
  return kAll[static_cast<int>(codec)];
}

// A shape in which rows are encoded: each coded row has its own scale, if the format has scales.
struct CodedShape {
  std::size_t rows, columns;
};

// Rows with fewer columns are short. Their numbers are encoded as coded rows of 64 numbers, because a scale for each
// short row would need more bytes than its codes.
inline constexpr std::size_t kShortRow = 32;

// Returns true if consecutive rows share scales, so that the decoded values depend on the order of rows.
constexpr bool shares_scales(RowCompression const& compression, std::size_t dim) {
  bool const has_scales = compression.codec == RowCodec::kInt8 || compression.codec == RowCodec::kInt4;
  return has_scales && (compression.top_k == 0 ? dim : compression.top_k) < kShortRow;
}
inline bool shares_scales(TableOptions const& table) {
  return shares_scales(table.gradient_compression, table.dim) || shares_scales(table.refresh_compression, table.dim);
}

// Returns the shape in which n rows are encoded. Short rows are encoded without their padding.
constexpr CodedShape coded_shape(std::size_t n, std::size_t columns) {
  if (columns >= kShortRow || n == 0) return {n, columns};
  std::size_t const numbers = n * columns, folded = std::min<std::size_t>(64, (numbers + 15) / 16 * 16);
  return {(numbers + folded - 1) / folded, folded};
}

}  // namespace gpups::cache
