// SPDX-License-Identifier: Apache-2.0
#include "kernels/codec/quantize_buckets.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/codec/quantize_rows.hpp"

namespace gpups::kernels {

void quantize_buckets(Stream& stream, QuantizeBuckets const& q) {
  GPUPS_ASSERT(q.bucket > 0 && q.bucket % 16 == 0);
  GPUPS_ASSERT(q.encoded.size() >= bucket_bytes(q.format, q.values.size(), q.bucket));
  auto const values = buckets_of(q.values, q.bucket);
  auto const residual = buckets_of(q.residual, q.bucket);
  auto const encoded = encoded_buckets(q.encoded, q.format, q.values.size(), q.bucket);
  quantize_rows(stream, {values.whole, residual.whole, encoded.whole, q.rounding, q.rounding_key});
  if (values.last.rows() == 0) return;
  RoundingKey rounding_key = q.rounding_key;
  rounding_key.first_row += values.whole.rows();
  quantize_rows(stream, {values.last, residual.last, encoded.last, q.rounding, rounding_key});
}

void dequantize_buckets(Stream& stream, DequantizeBuckets const& u) {
  GPUPS_ASSERT(u.bucket > 0 && u.encoded.size() >= bucket_bytes(u.format, u.out.size(), u.bucket));
  auto const out = buckets_of(u.out, u.bucket);
  auto const encoded = encoded_buckets(u.encoded, u.format, u.out.size(), u.bucket);
  if (u.add) {
    add_dequantized(stream, {encoded.whole, {}, out.whole});
    if (out.last.rows() > 0) add_dequantized(stream, {encoded.last, {}, out.last});
  } else {
    dequantize_rows(stream, {encoded.whole, out.whole});
    if (out.last.rows() > 0) dequantize_rows(stream, {encoded.last, out.last});
  }
}

}  // namespace gpups::kernels
