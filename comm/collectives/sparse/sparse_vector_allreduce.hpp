// SPDX-License-Identifier: Apache-2.0
// Sums of sparse vectors and arrays of floats with the algorithms over sparse streams. Callers need not know streams.
#pragma once

#include "comm/collectives/allreduce/dense.hpp"
#include "comm/collectives/sparse/algorithms.hpp"
#include "kernels/codec/format.hpp"

namespace gpups::comm {

// Returns whether sparse streams support the format for floats.
constexpr bool has_stream_format(WireFormat format) {
  return format <= WireFormat::kBFloat16 || format == WireFormat::kInt8;
}

// Returns the format as the kernels define it.
constexpr kernels::Format wire_format(WireFormat format) {
  constexpr kernels::Format kAll[] = {kernels::Format::kFloat, kernels::Format::kHalf, kernels::Format::kBFloat16,
                                      kernels::Format::kInt8,  kernels::Format::kInt4, kernels::Format::kInt2};
  return kAll[static_cast<int>(format)];
}

// Returns whether the largest error of numbers in `format` is nowhere larger than that in the `other` format, by the
// errors in kernels/codec/format.hpp. A bfloat16 loses less of each number than a format with scales loses of the
// largest number of its block. A half replaces no other format, because it cuts off large numbers and has few digits of
// small ones. A format with scales replaces no other one either, because algorithms have different blocks.
constexpr bool is_as_exact(WireFormat format, WireFormat other) {
  if (format == other || format == WireFormat::kFloat) return true;
  return format == WireFormat::kBFloat16 && kernels::has_scale(wire_format(other));
}

// Returns the form of values in streams for the format.
kernels::ValueForm form_of(WireFormat format);

// Sums vectors by one of the algorithms of algorithms.hpp. The result is a list if it has few elements. Vectors on a
// GPU are summed by the host. REQUIRES: has_stream_format(sum.format).
using StreamAlgorithm = CoTask<StreamSum<float>> (*)(Communicator&, StreamInput<float>);
CoTask<ReducedVector> allreduce_sparse_vector(Communicator& comm, SparseAllreduce sum, StreamAlgorithm algorithm);
template <StreamAlgorithm Algorithm>
CoTask<ReducedVector> as_streams(Communicator& comm, SparseAllreduce sum) {
  return allreduce_sparse_vector(comm, std::move(sum), Algorithm);
}

// Sums vectors by dsar_split_allgather(): terms are sent as floats, sums in any wire format.
CoTask<ReducedVector> dsar_sparse_vector(Communicator& comm, SparseAllreduce sum);

// Sums arrays by one of the algorithms of algorithms.hpp: only nonzero elements are sent, and a sum of 0 is +0. Arrays
// on a GPU are summed by the host. REQUIRES: has_stream_format(sum.format).
CoTask<> allreduce_array_as_stream(Communicator& comm, DenseAllreduce sum, StreamAlgorithm algorithm);
template <StreamAlgorithm Algorithm>
CoTask<> array_as_streams(Communicator& comm, DenseAllreduce sum) {
  return allreduce_array_as_stream(comm, std::move(sum), Algorithm);
}

// Sums arrays by dsar_split_allgather(): terms are sent as floats, sums in any wire format.
CoTask<> dsar_array(Communicator& comm, DenseAllreduce sum);

// Returns this rank's slice of the sum, see slice_of().
CoTask<ReducedVector> reduce_scatter_sparse_vector(Communicator& comm, SparseAllreduce sum);

}  // namespace gpups::comm
