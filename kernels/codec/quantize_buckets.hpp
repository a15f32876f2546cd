// SPDX-License-Identifier: Apache-2.0
// Quantizes a long vector with a scale for each wire bucket, and back (QSGD: Alistarh, Grubic, Li, Tomioka, Vojnovic,
// NIPS 2017, with the largest magnitude as the norm).
#pragma once

#include "gpups/array.hpp"
#include "kernels/codec/format.hpp"

namespace gpups::kernels {

// As quantize_rows(), where each bucket is a row.
struct QuantizeBuckets {
  View<float const> values;   // (n)
  View<float> residual = {};  // (n), or empty
  Format format;
  std::size_t bucket;       // columns of a bucket, for instance 512; a multiple of 16
  View<std::uint8_t> wire;  // (bucket_bytes(format, n, bucket)), begins at a multiple of 16 bytes
  Rounding rounding = Rounding::kNearest;
  RoundingKey rounding_key = {};  // its rows are the buckets
};
void quantize_buckets(Stream& stream, QuantizeBuckets const& arguments);

// out = the vector, or out += the vector with `add`.
struct DequantizeBuckets {
  View<std::uint8_t const> wire;
  Format format;
  std::size_t bucket;
  View<float> out;  // (n)
  bool add = false;
};
void dequantize_buckets(Stream& stream, DequantizeBuckets const& arguments);

}  // namespace gpups::kernels
