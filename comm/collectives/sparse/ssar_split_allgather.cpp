// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/sparse/exchange_streams.hpp"

namespace gpups::comm {

template <class T>
CoTask<StreamSum<T>> sparse_reduce_scatter(Communicator& comm, StreamInput<T> terms) {
  co_return StreamSum<T>(terms.stream, co_await alltoall_streams(comm, terms));
}

template <class T>
CoTask<StreamSum<T>> ssar_split_allgather(Communicator& comm, StreamInput<T> terms) {
  Streams const parts = co_await alltoall_streams(comm, terms);
  std::vector<Slice> const slices = slices_of_ranks(terms.size, comm.ranks());
  Slice const mine = slices[number(comm.me())];
  co_return StreamSum<T>(
      terms.stream,
      co_await allgather_streams(comm, sum_streams(comm, parts, terms, slice_or_empty(terms.residual, mine)), slices));
}

template CoTask<StreamSum<float>> sparse_reduce_scatter(Communicator&, StreamInput<float>);
template CoTask<StreamSum<std::int64_t>> sparse_reduce_scatter(Communicator&, StreamInput<std::int64_t>);
template CoTask<StreamSum<float>> ssar_split_allgather(Communicator&, StreamInput<float>);
template CoTask<StreamSum<std::int64_t>> ssar_split_allgather(Communicator&, StreamInput<std::int64_t>);

}  // namespace gpups::comm
