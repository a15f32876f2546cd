// SPDX-License-Identifier: Apache-2.0
// Algorithms that sum sparse vectors.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/collective/dense.hpp"
#include "comm/collective/mesh.hpp"
#include "comm/collective/task.hpp"
#include "gpups/allreduce.hpp"

namespace gpups::comm {

// A rank's vector, and how numbers go.
struct SparseSum {
  SparseView vector;                 // on the mesh's device
  std::shared_ptr<void const> keep;  // owns it
  NumberFormat format = NumberFormat::kFloat;
};

// From this density on vectors are held as arrays, which take up to twice a list's memory then: within a machine going
// through indices takes longer than the bytes that it saves, and what is slower sends streams of either. Sums that are
// as dense are arrays.
inline constexpr double kArrayFrom = .25;

// Makes an array of the vector, and sums it as one.
Task<SumVector> sum_made_dense(Mesh& mesh, SparseSum sum, Task<> (*sum_dense)(Mesh&, DenseSum));
template <Task<> (*SumDense)(Mesh&, DenseSum)>
Task<SumVector> sum_as_dense(Mesh& mesh, SparseSum sum) {
  return sum_made_dense(mesh, std::move(sum), SumDense);
}

}  // namespace gpups::comm
