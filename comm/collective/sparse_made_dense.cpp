// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "comm/collective/check_elements.hpp"
#include "comm/collective/sparse.hpp"
#include "kernels/add_elements.hpp"

namespace gpups::comm {
namespace {

Task<> check_given(Mesh& mesh, SparseView vector) {
  if (vector.indices.device().is_host()) {
    check_elements(vector.size, vector.indices);
    co_return;
  }
  Array<std::uint32_t> const indices(Device::host(), vector.indices.size());
  copy<std::uint32_t>(mesh.stream(), indices, vector.indices);
  co_await mesh.caught_up();
  check_elements(vector.size, indices);
}

}  // namespace

Task<SumVector> sum_made_dense(Mesh& mesh, SparseSum sum, Task<> (*sum_dense)(Mesh&, DenseSum)) {
  co_await check_given(mesh, sum.vector);
  auto& stream = mesh.stream();
  auto const values = std::make_shared<Array<float>>(stream.device(), sum.vector.size);
  memory::fill_bytes(stream, values->data(), 0, values->bytes());
  kernels::add_elements(stream, {.indices = sum.vector.indices, .values = sum.vector.values, .into = *values});
  DenseSum const of{.values = *values, .keep = values};
  co_await sum_dense(mesh, of);
  co_return SumVector{.first = 0, .size = sum.vector.size, .values = std::move(*values)};
}

}  // namespace gpups::comm
