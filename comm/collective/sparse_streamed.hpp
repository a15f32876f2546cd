// SPDX-License-Identifier: Apache-2.0
// Sums of sparse vectors of floats by the algorithms over streams, for callers that know nothing of streams.
#pragma once

#include "comm/collective/sparse.hpp"
#include "comm/collective/stream_sums.hpp"
#include "kernels/wire/format.hpp"

namespace gpups::comm {

// Formats in which streams say floats.
constexpr bool have_streams(NumberFormat format) {
  return format <= NumberFormat::kBFloat || format == NumberFormat::kInt8;
}

// What lies on the wire.
constexpr kernels::Format wire_format(NumberFormat format) { return static_cast<kernels::Format>(format); }
static_assert(wire_format(NumberFormat::kFloat) == kernels::Format::kFloat);
static_assert(wire_format(NumberFormat::kHalf) == kernels::Format::kHalf);
static_assert(wire_format(NumberFormat::kBFloat) == kernels::Format::kBFloat);
static_assert(wire_format(NumberFormat::kE4M3) == kernels::Format::kE4M3);
static_assert(wire_format(NumberFormat::kE5M2) == kernels::Format::kE5M2);
static_assert(wire_format(NumberFormat::kInt8) == kernels::Format::kInt8);
static_assert(wire_format(NumberFormat::kInt4) == kernels::Format::kInt4);
static_assert(wire_format(NumberFormat::kInt2) == kernels::Format::kInt2);

// Whether the largest error of numbers that are sent as `format` is nowhere larger than that of the `other` format, by
// the errors in kernels/wire/format.hpp. A bfloat loses less of each number than a format with a scale loses of the
// largest number of its block. A half cuts off large numbers and has few digits of small ones, as no other format; and
// the blocks of scales differ between algorithms.
constexpr bool is_as_exact(NumberFormat format, NumberFormat other) {
  if (format == other || format == NumberFormat::kFloat) return true;
  return format == NumberFormat::kBFloat && kernels::has_scale(wire_format(other));
}

// How streams say floats in such a format.
kernels::ValueForm form_of(NumberFormat format);

// By one of the algorithms of stream_sums.hpp. The result is sparse where it has few elements. A GPU's vectors are
// summed by the host. REQUIRES: have_streams(sum.format).
using SumStreams = Task<StreamTotal<float>> (*)(Mesh&, StreamTerms<float>);
Task<SumVector> sum_streamed(Mesh& mesh, SparseSum sum, SumStreams algorithm);
template <SumStreams Algorithm>
Task<SumVector> sum_as_streams(Mesh& mesh, SparseSum sum) {
  return sum_streamed(mesh, std::move(sum), Algorithm);
}

// By sum_by_dense_owners(): terms go as they are, sums in the format, which may be any.
Task<SumVector> sum_streams_densely(Mesh& mesh, SparseSum sum);

// This rank's slice of the sum, slice_of() the size.
Task<SumVector> scatter_streamed(Mesh& mesh, SparseSum sum);

}  // namespace gpups::comm
