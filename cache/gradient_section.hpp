// SPDX-License-Identifier: Apache-2.0
// Gradients of a part of a batch in a message, where rows may be missing: where a filter may hold some back, a bit for
// each row of the part; then the bytes of the rows that are sent, in the part's order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cache/row_coder.hpp"

namespace gpups::cache {

class GradientSection {
 public:
  explicit GradientSection(TableOptions const& table)
      : coder_(table, table.gradient_compression, false),
        filters_(table.gradient_compression.filter.age_max > 0),
        dim_(table.dim) {}

  // Whether a section of so many of n rows can have this size.
  bool is_valid_size(std::uint64_t bytes, std::uint64_t sent, std::size_t n) const;

  // Writes those of n rows whose numbers are `sent`, ascending. rows: (sent, dim); afterwards what the codec has left.
  // Waits for `stream`.
  kernels::PackedBytes wait_write(Stream& stream, View<std::uint32_t const> sent, std::size_t n,
                                  MatrixView<std::int64_t> rows) const;
  // The rows that were sent, and a bitmap of which of the n these are, or none: all. It lies in the section's bytes.
  struct Sent {
    Matrix<std::int64_t> sums;  // (sent, dim)
    View<std::uint32_t const> marked;
  };
  // Nothing where the bytes are no such section. REQUIRES: is_valid_size(). Waits for `stream`.
  std::optional<Sent> wait_read(Stream& stream, View<std::uint8_t const> bytes, std::size_t sent, std::size_t n) const;

 private:
  std::size_t head(std::size_t n) const;

  RowCoder coder_;
  bool filters_;
  std::size_t dim_;
};

}  // namespace gpups::cache
