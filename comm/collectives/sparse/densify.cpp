// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "comm/collectives/sparse/sparse.hpp"
#include "comm/collectives/sparse/streams.hpp"
#include "kernels/sparse/encode_stream.hpp"
#include "kernels/sparse/sum_streams.hpp"
#include "kernels/sum/sum_arrays.hpp"

namespace gpups::comm {
namespace {

// Fills the array block by block, as the sum of one stream.
void fill_on_host(Stream& stream, SparseView vector, View<float> into) {
  check_last_index(vector.size, vector.indices);
  auto const listed = kernels::view_in_place(stream, {vector.indices, vector.values, 0, vector.size});
  kernels::sum<float>(stream, kernels::SumToDense<float>{{&listed.view, 1}, into});
}

CoTask<> fill_on_gpu(Communicator& comm, SparseView vector, View<float> into) {
  Array<std::uint32_t> const indices(Device::host(), vector.indices.size());
  copy<std::uint32_t>(comm.stream(), indices, vector.indices);
  co_await comm.stream_done();
  check_indices(vector.size, indices);
  memory::fill_bytes(comm.stream(), into.data(), 0, into.bytes());
  kernels::add_elements(comm.stream(), {.indices = vector.indices, .values = vector.values, .into = into});
}

}  // namespace

CoTask<ReducedVector> allreduce_densified(Communicator& comm, SparseAllreduce sum,
                                          CoTask<> (*sum_dense)(Communicator&, DenseAllreduce)) {
  auto const values = std::make_shared<Array<float>>(comm.stream().device(), sum.vector.size);
  if (comm.stream().device().is_host()) {
    fill_on_host(comm.stream(), sum.vector, *values);
  } else {
    co_await fill_on_gpu(comm, sum.vector, *values);
  }
  DenseAllreduce const of{.values = *values, .keep = values};
  co_await sum_dense(comm, of);
  co_return ReducedVector{.first = 0, .size = sum.vector.size, .values = std::move(*values)};
}

}  // namespace gpups::comm
