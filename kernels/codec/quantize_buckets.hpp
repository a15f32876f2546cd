// SPDX-License-Identifier: Apache-2.0
// Quantizes a long vector with a scale for each quantization bucket, and back (QSGD: Alistarh, Grubic, Li, Tomioka,
// Vojnovic, NIPS 2017, with the largest magnitude as the norm).
#pragma once

#include "gpups/array.hpp"
#include "kernels/codec/format.hpp"

namespace gpups::kernels {

// A long vector as rows: quantization buckets of equal length, each with its own scale or its own top-k, and a shorter
// last one. Kernels for rows, such as top_k_rows(), are called for both matrices.

// The whole buckets of a vector, (size / bucket, bucket), and the rest, (1, size % bucket) or without a row.
template <class T>
struct VectorBuckets {
  MatrixView<T> whole, last;
};

// Splits a vector. An empty vector gives two matrices without rows, so an empty residual stays empty. REQUIRES: bucket
// > 0.
template <class T>
VectorBuckets<T> buckets_of(View<T> vector, std::size_t bucket) {
  std::size_t const rows = vector.size() / bucket, rest = vector.size() % bucket;
  return {{vector.data(), rows, bucket, bucket, vector.device()},
          {vector.data() + rows * bucket, rest == 0 ? 0U : 1U, rest, rest, vector.device()}};
}

// Returns the bytes of an encoded vector: its whole buckets, then the last one.
constexpr std::size_t bucket_bytes(Format format, std::size_t size, std::size_t bucket) {
  std::size_t const rest = size % bucket;
  return encoded_bytes(format, size / bucket, bucket) + (rest == 0 ? 0 : encoded_bytes(format, 1, rest));
}

// Returns the two parts of an encoded vector. Byte is std::uint8_t or std::uint8_t const.
template <class Byte>
auto encoded_buckets(View<Byte> encoded, Format format, std::size_t size, std::size_t bucket) {
  std::size_t const rows = size / bucket, rest = size % bucket, whole = encoded_bytes(format, rows, bucket);
  struct {
    decltype(encoded_rows(encoded, format, rows, bucket)) whole, last;
  } const both{encoded_rows(encoded.slice(0, whole), format, rows, bucket),
               encoded_rows(encoded.slice(whole, encoded.size() - whole), format, rest == 0 ? 0 : 1, rest)};
  return both;
}

// As quantize_rows(), where each bucket is a row.
struct QuantizeBuckets {
  View<float const> values;   // (n)
  View<float> residual = {};  // (n), or empty
  Format format;
  std::size_t bucket;          // columns of a bucket, for instance 512; a multiple of 16
  View<std::uint8_t> encoded;  // (bucket_bytes(format, n, bucket)), begins at a multiple of 16 bytes
  Rounding rounding = Rounding::kNearest;
  RoundingKey rounding_key = {};  // its rows are the buckets
};
void quantize_buckets(Stream& stream, QuantizeBuckets const& arguments);

// out = the vector, or out += the vector with `add`.
struct DequantizeBuckets {
  View<std::uint8_t const> encoded;
  Format format;
  std::size_t bucket;
  View<float> out;  // (n)
  bool add = false;
};
void dequantize_buckets(Stream& stream, DequantizeBuckets const& arguments);

}  // namespace gpups::kernels
