// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "comm/collective/sparse.hpp"
#include "kernels/add_elements.hpp"

namespace gpups::comm {

Task<SumVector> sum_made_dense(Mesh& mesh, SparseSum sum, Task<> (*sum_dense)(Mesh&, DenseSum)) {
  auto& stream = mesh.stream();
  auto const values = std::make_shared<Array<float>>(stream.device(), sum.vector.size);
  memory::fill_bytes(stream, values->data(), 0, values->bytes());
  kernels::add_elements(stream, {.indices = sum.vector.indices, .values = sum.vector.values, .into = *values});
  DenseSum const of{.values = *values, .keep = values};
  co_await sum_dense(mesh, of);
  co_return SumVector{.first = 0, .size = sum.vector.size, .values = std::move(*values)};
}

}  // namespace gpups::comm
