// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/sparse/exchange_streams.hpp"

namespace gpups::comm {

template <class T>
CoTask<StreamSum<T>> sparse_allgather(Communicator& comm, StreamInput<T> terms) {
  Slice const whole{0, terms.size};
  std::vector<Slice> const ranges(static_cast<std::size_t>(comm.ranks()), whole);
  co_return StreamSum<T>(terms.stream, co_await allgather_streams(comm, encode_slice(terms, whole), ranges));
}

template CoTask<StreamSum<float>> sparse_allgather(Communicator&, StreamInput<float>);
template CoTask<StreamSum<std::int64_t>> sparse_allgather(Communicator&, StreamInput<std::int64_t>);

}  // namespace gpups::comm
