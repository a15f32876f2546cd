// SPDX-License-Identifier: Apache-2.0
// The bytes of compressed gradients of one part of a batch: if the table has a row filter, a bitmap with one bit for
// each row of the part; then the sent rows in the order of the part, as RowCoder encodes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cache/wire/row_coder.hpp"

namespace gpups::cache {

// Encodes and decodes the gradient sections of one table.
//
//   PackedBytes const bytes = section.wait_write(stream, sent, n, rows);  // sender; `rows` then has the residuals
//   auto const received = section.wait_read(stream, bytes, sent_count, n);  // receiver
class GradientSection {
 public:
  explicit GradientSection(TableOptions const& table)
      : coder_(table, table.gradient_compression, false),
        filters_(table.gradient_compression.filter.age_max > 0),
        dim_(table.dim) {}

  // Returns true if a section with `sent` of `n` rows can have `bytes` bytes.
  bool is_valid_size(std::uint64_t bytes, std::uint64_t sent, std::size_t n) const;

  // Encodes rows of a part of `n` rows. sent: their indices in the part, ascending. rows: (sent, dim), their sums; the
  // call replaces them by the residuals that the codec leaves. Waits for `stream`.
  kernels::PackedBytes wait_write(Stream& stream, View<std::uint32_t const> sent, std::size_t n,
                                  MatrixView<std::int64_t> rows) const;
  // The decoded rows. marked: a bitmap of the sent rows, a view of the section's bytes; empty: all n rows were sent.
  struct Sent {
    Matrix<std::int64_t> sums;  // (sent, dim)
    View<std::uint32_t const> marked;
  };
  // Decodes a section. Returns nullopt if the bytes are invalid. REQUIRES: is_valid_size(). Waits for `stream`.
  std::optional<Sent> wait_read(Stream& stream, View<std::uint8_t const> bytes, std::size_t sent, std::size_t n) const;

 private:
  std::size_t head(std::size_t n) const;

  RowCoder coder_;
  bool filters_;
  std::size_t dim_;
};

}  // namespace gpups::cache
