// SPDX-License-Identifier: Apache-2.0
// A long vector as rows: buckets of equal length, each with its own scale or its own top-k, and a shorter last one.
// Kernels of rows, such as top_k_rows(), are called for both parts.
#pragma once

#include "gpups/array.hpp"
#include "kernels/wire/format.hpp"

namespace gpups::kernels {

// The whole buckets of a vector, (size / bucket, bucket), and what is behind them, (1, size % bucket) or no row.
template <class T>
struct VectorBuckets {
  MatrixView<T> whole, last;
};

// An empty vector gives two matrices without rows: no residual stays no residual. REQUIRES: bucket > 0.
template <class T>
VectorBuckets<T> buckets_of(View<T> vector, std::size_t bucket) {
  std::size_t const rows = vector.size() / bucket, rest = vector.size() % bucket;
  return {{vector.data(), rows, bucket, bucket, vector.device()},
          {vector.data() + rows * bucket, rest == 0 ? 0U : 1U, rest, rest, vector.device()}};
}

// Bytes of a vector on the wire: its whole buckets, then the last one.
constexpr std::size_t bucket_bytes(Format format, std::size_t size, std::size_t bucket) {
  std::size_t const rest = size % bucket;
  return wire_bytes(format, size / bucket, bucket) + (rest == 0 ? 0 : wire_bytes(format, 1, rest));
}

// The two parts of a vector on the wire, `Byte` being std::uint8_t or a constant of it.
template <class Byte>
auto wire_buckets(View<Byte> wire, Format format, std::size_t size, std::size_t bucket) {
  std::size_t const rows = size / bucket, rest = size % bucket, whole = wire_bytes(format, rows, bucket);
  struct {
    decltype(wire_rows(wire, format, rows, bucket)) whole, last;
  } const both{wire_rows(wire.slice(0, whole), format, rows, bucket),
               wire_rows(wire.slice(whole, wire.size() - whole), format, rest == 0 ? 0 : 1, rest)};
  return both;
}

}  // namespace gpups::kernels
