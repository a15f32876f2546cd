// SPDX-License-Identifier: Apache-2.0
// Sums of sparse vectors of floats by the algorithms over streams, for callers that know nothing of streams.
#pragma once

#include "comm/collective/sparse.hpp"
#include "comm/collective/stream_sums.hpp"

namespace gpups::comm {

// Formats in which streams say floats.
constexpr bool have_streams(NumberFormat format) {
  return format <= NumberFormat::kBFloat || format == NumberFormat::kInt8;
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
