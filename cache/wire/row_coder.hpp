// SPDX-License-Identifier: Apache-2.0
// The encoding of rows of summed gradients in messages: its number format and shape, and its coder. The encoding of n
// rows is: with top_k, a bitmap of the sent columns for each row; then the numbers of the sent columns, as codes and
// scales, or as packed integers if they are exact.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/table.hpp"
#include "kernels/codec/format.hpp"
#include "kernels/codec/pack_sums.hpp"

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

// The encoder and decoder for the gradients of one table. The decoded numbers and the residuals add up exactly to the
// encoded rows.
class RowCoder {
 public:
  // exact: encode whole rows as exact sums, regardless of `compression`.
  RowCoder(TableOptions const& table, RowCompression const& compression, bool exact);

  // Returns true if the encoding of n rows can have `bytes` bytes.
  bool is_valid_size(std::uint64_t bytes, std::size_t n) const;

  // Encodes rows, (n, dim), and replaces them by their residuals. Returns `head` bytes for the caller to fill, a
  // multiple of 4, and the encoding after them. REQUIRES: magnitudes are at most 2^62. Waits for `stream`.
  kernels::PackedBytes wait_encode(Stream& stream, MatrixView<std::int64_t> rows, std::size_t head) const;

  // Decodes n rows and adds row i to row slots[i] of `into`, or to row i if `slots` is empty. Does not change the
  // padding. Returns false if the bytes are invalid. REQUIRES: is_valid_size(). Waits for `stream`.
  bool wait_add(Stream& stream, View<std::uint8_t const> from, std::size_t n, View<std::uint32_t const> slots,
                MatrixView<std::int64_t> into) const;

 private:
  std::size_t bitmap_bytes(std::size_t n) const;
  std::size_t code_bytes(std::size_t n) const;
  kernels::PackedBytes wait_pack(Stream& stream, MatrixView<std::int64_t> rows, std::size_t head) const;
  kernels::PackedBytes wait_quantize(Stream& stream, MatrixView<std::int64_t> rows, std::size_t head) const;
  kernels::PackedBytes wait_encode_numbers(Stream& stream, MatrixView<std::int64_t> rows, std::size_t head) const;
  bool wait_add_packed(Stream& stream, View<std::uint8_t const> from, std::size_t n, View<std::uint32_t const> slots,
                       MatrixView<std::int64_t> into) const;
  void wait_add_codes(Stream& stream, View<std::uint8_t const> from, std::size_t n, View<std::uint32_t const> slots,
                      MatrixView<std::int64_t> into) const;

  std::size_t dim_;
  std::size_t width_;  // columns that are sent
  int grid_log2_;
  bool exact_;  // numbers are exact sums
  kernels::Format format_;
};

// Returns an array of one element, kNoRow, to which kernels write the number of a bad row. Queued on `stream`.
inline Array<std::uint32_t> make_bad_row(Stream& stream) {
  Array<std::uint32_t> bad_row(stream.device(), 1);
  memory::fill_bytes(stream, bad_row.data(), 0xFF, bad_row.bytes());
  return bad_row;
}

}  // namespace gpups::cache
