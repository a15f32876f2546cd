// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "comm/collective/check_elements.hpp"
#include "comm/collective/sparse.hpp"
#include "kernels/add_elements.hpp"
#include "kernels/wire/encode_stream.hpp"
#include "kernels/wire/sum_streams.hpp"

namespace gpups::comm {
namespace {

// On the host block by block, as a sum of one stream.
void fill_on_host(Stream& stream, SparseView vector, View<float> into) {
  check_end(vector.size, vector.indices);
  auto const listed = kernels::view_in_place(stream, {vector.indices, vector.values, 0, vector.size});
  kernels::sum<float>(stream, kernels::SumToDense<float>{{&listed.view, 1}, into});
}

Task<> fill_on_gpu(Mesh& mesh, SparseView vector, View<float> into) {
  Array<std::uint32_t> const indices(Device::host(), vector.indices.size());
  copy<std::uint32_t>(mesh.stream(), indices, vector.indices);
  co_await mesh.caught_up();
  check_elements(vector.size, indices);
  memory::fill_bytes(mesh.stream(), into.data(), 0, into.bytes());
  kernels::add_elements(mesh.stream(), {.indices = vector.indices, .values = vector.values, .into = into});
}

}  // namespace

Task<SumVector> sum_made_dense(Mesh& mesh, SparseSum sum, Task<> (*sum_dense)(Mesh&, DenseSum)) {
  auto const values = std::make_shared<Array<float>>(mesh.stream().device(), sum.vector.size);
  if (mesh.stream().device().is_host()) {
    fill_on_host(mesh.stream(), sum.vector, *values);
  } else {
    co_await fill_on_gpu(mesh, sum.vector, *values);
  }
  DenseSum const of{.values = *values, .keep = values};
  co_await sum_dense(mesh, of);
  co_return SumVector{.first = 0, .size = sum.vector.size, .values = std::move(*values)};
}

}  // namespace gpups::comm
