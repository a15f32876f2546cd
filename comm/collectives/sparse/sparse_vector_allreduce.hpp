// SPDX-License-Identifier: Apache-2.0
// Sums of sparse vectors of floats by the algorithms over streams, for callers that know nothing of streams.
#pragma once

#include "comm/collectives/sparse/algorithms.hpp"
#include "comm/collectives/sparse/sparse.hpp"
#include "kernels/wire/format.hpp"

namespace gpups::comm {

// Formats in which streams say floats.
constexpr bool has_stream_format(WireFormat format) {
  return format <= WireFormat::kBFloat16 || format == WireFormat::kInt8;
}

// What lies on the wire.
constexpr kernels::Format wire_format(WireFormat format) { return static_cast<kernels::Format>(format); }
static_assert(wire_format(WireFormat::kFloat) == kernels::Format::kFloat);
static_assert(wire_format(WireFormat::kHalf) == kernels::Format::kHalf);
static_assert(wire_format(WireFormat::kBFloat16) == kernels::Format::kBFloat16);
static_assert(wire_format(WireFormat::kE4M3) == kernels::Format::kE4M3);
static_assert(wire_format(WireFormat::kE5M2) == kernels::Format::kE5M2);
static_assert(wire_format(WireFormat::kInt8) == kernels::Format::kInt8);
static_assert(wire_format(WireFormat::kInt4) == kernels::Format::kInt4);
static_assert(wire_format(WireFormat::kInt2) == kernels::Format::kInt2);

// Whether the largest error of numbers that are sent as `format` is nowhere larger than that of the `other` format, by
// the errors in kernels/wire/format.hpp. A bfloat loses less of each number than a format with a scale loses of the
// largest number of its block. A half cuts off large numbers and has few digits of small ones, as no other format; and
// the blocks of scales differ between algorithms.
constexpr bool is_as_exact(WireFormat format, WireFormat other) {
  if (format == other || format == WireFormat::kFloat) return true;
  return format == WireFormat::kBFloat16 && kernels::has_scale(wire_format(other));
}

// How streams say floats in such a format.
kernels::ValueForm form_of(WireFormat format);

// By one of the algorithms of algorithms.hpp. The result is sparse where it has few elements. A GPU's vectors are
// summed by the host. REQUIRES: has_stream_format(sum.format).
using StreamAlgorithm = CoTask<StreamSum<float>> (*)(Communicator&, StreamInput<float>);
CoTask<ReducedVector> allreduce_sparse_vector(Communicator& comm, SparseAllreduce sum, StreamAlgorithm algorithm);
template <StreamAlgorithm Algorithm>
CoTask<ReducedVector> as_streams(Communicator& comm, SparseAllreduce sum) {
  return allreduce_sparse_vector(comm, std::move(sum), Algorithm);
}

// By dsar_split_allgather(): terms go as they are, sums in the format, which may be any.
CoTask<ReducedVector> dsar_sparse_vector(Communicator& comm, SparseAllreduce sum);

// Sums of arrays of floats by the algorithms over streams: only those elements of theirs are sent that are not 0. A sum
// that is 0 is +0.
// By one of the algorithms of algorithms.hpp. A GPU's arrays are summed by the host. REQUIRES:
// has_stream_format(sum.format).
CoTask<> allreduce_array_as_stream(Communicator& comm, DenseAllreduce sum, StreamAlgorithm algorithm);
template <StreamAlgorithm Algorithm>
CoTask<> array_as_streams(Communicator& comm, DenseAllreduce sum) {
  return allreduce_array_as_stream(comm, std::move(sum), Algorithm);
}

// By dsar_split_allgather(): terms go as they are, sums in the format, which may be any.
CoTask<> dsar_array(Communicator& comm, DenseAllreduce sum);

// This rank's slice of the sum, slice_of() the size.
CoTask<ReducedVector> reduce_scatter_sparse_vector(Communicator& comm, SparseAllreduce sum);

}  // namespace gpups::comm
