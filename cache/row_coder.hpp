// SPDX-License-Identifier: Apache-2.0
// Rows of sums as bytes of a message, in a table's codec: what is sent and what is left are together what there was.
//
// The bytes of n rows: where only the largest columns are sent, a bitmap of these for each row; then their numbers,
// which are codes and scales, or exact sums in as few bytes as hold them. See row_format.hpp for short rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/table.hpp"
#include "kernels/wire/format.hpp"
#include "kernels/wire/pack_sums.hpp"

namespace gpups::cache {

class RowCoder {
 public:
  // exact: as if the transfer said lossless, and all columns.
  RowCoder(TableOptions const& table, RowCompression const& transfer, bool exact);

  // Whether n rows can be so many bytes.
  bool is_valid_size(std::uint64_t bytes, std::size_t n) const;

  // Makes bytes of rows, behind `head` bytes that the caller fills, a multiple of 4; and leaves in the rows what was
  // not sent. No number is further from 0 than 2^62. Waits for `stream`.
  kernels::PackedBytes wait_encode(Stream& stream, MatrixView<std::int64_t> rows, std::size_t head) const;

  // Adds n rows to rows slots[i] of `into`, or row i to row i where slots are empty; padding apart. False where the
  // bytes are no such rows. REQUIRES: is_valid_size(). Waits for `stream`.
  bool wait_add(Stream& stream, View<std::uint8_t const> from, std::size_t n, View<std::uint32_t const> slots,
                MatrixView<std::int64_t> into) const;

 private:
  std::size_t bitmap_bytes(std::size_t n) const;
  std::size_t code_bytes(std::size_t n) const;
  kernels::PackedBytes wait_narrow(Stream& stream, MatrixView<std::int64_t> rows, std::size_t head) const;
  kernels::PackedBytes wait_quantize(Stream& stream, MatrixView<std::int64_t> rows, std::size_t head) const;
  kernels::PackedBytes wait_encode_numbers(Stream& stream, MatrixView<std::int64_t> rows, std::size_t head) const;
  bool wait_add_narrow(Stream& stream, View<std::uint8_t const> from, std::size_t n, View<std::uint32_t const> slots,
                       MatrixView<std::int64_t> into) const;
  void wait_add_codes(Stream& stream, View<std::uint8_t const> from, std::size_t n, View<std::uint32_t const> slots,
                      MatrixView<std::int64_t> into) const;

  std::size_t dim_;
  std::size_t width_;  // columns that are sent
  int grid_log2_;
  bool exact_;  // numbers are sums as they are
  kernels::Format format_;
};

}  // namespace gpups::cache
