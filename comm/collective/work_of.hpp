// SPDX-License-Identifier: Apache-2.0
// What a rank does in each of the algorithms, for a reckoning of their times. summed: elements of the sum that are not
// zero.
#pragma once

#include "comm/collective/algorithms.hpp"

namespace gpups::comm {

// Of sum_directly, sum_by_doubling and sum_by_lane; also where they make an array of a sparse vector first.
Work work_of_direct(SumShape const& shape, double summed);
Work work_of_doubling(SumShape const& shape, double summed);
Work work_of_lane(SumShape const& shape, double summed);

// Of the algorithms over streams, and of making a list or an array of their result.
Work work_of_gathering(SumShape const& shape, double summed);
Work work_of_sparse_doubling(SumShape const& shape, double summed);
Work work_of_owners(SumShape const& shape, double summed);
Work work_of_dense_owners(SumShape const& shape, double summed);

// Bytes of a stream of a range, its `count` elements being anywhere, each of `value_bytes`.
double stream_bytes(double size, double count, double value_bytes);

}  // namespace gpups::comm
