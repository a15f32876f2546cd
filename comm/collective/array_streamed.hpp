// SPDX-License-Identifier: Apache-2.0
// Sums of arrays of floats by the algorithms over streams: only those elements of theirs are sent that are not 0. A sum
// that is 0 is +0.
#pragma once

#include "comm/collective/dense.hpp"
#include "comm/collective/sparse_streamed.hpp"

namespace gpups::comm {

// By one of the algorithms of stream_sums.hpp. A GPU's arrays are summed by the host. REQUIRES:
// have_streams(sum.format).
Task<> sum_array_streamed(Mesh& mesh, DenseSum sum, SumStreams algorithm);
template <SumStreams Algorithm>
Task<> sum_array_as_streams(Mesh& mesh, DenseSum sum) {
  return sum_array_streamed(mesh, std::move(sum), Algorithm);
}

// By sum_by_dense_owners(): terms go as they are, sums in the format, which may be any.
Task<> sum_array_densely(Mesh& mesh, DenseSum sum);

}  // namespace gpups::comm
