// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/sparse/exchange_streams.hpp"

namespace gpups::comm {
namespace {

// Returns `mine` and the streams of the other ranks, in the order of the ranks, after the others have received what
// this rank sent. Otherwise they would wait while this rank adds, because it makes no progress then.
CoTask<Streams> wait_incoming(Communicator& comm, Streams mine, kernels::ValueForm form, std::vector<Slice> ranges,
                              std::vector<SendRequest> sent) {
  std::vector<CoTask<Streams>> incoming(ranges.size());
  for (Rank const q : other_ranks(comm)) {
    std::vector<Slice> const range{ranges[number(q)]};
    incoming[number(q)] = receive_streams(comm, q, range, form);
    incoming[number(q)].start();
  }
  Streams all;
  for (std::uint32_t r = 0; r < ranges.size(); ++r) {
    if (Rank{r} == comm.me()) {
      all.add(mine);
    } else {
      auto& task = incoming[r];
      Streams const its = co_await task;
      all.add(its);
    }
  }
  for (auto& its : sent) co_await its;
  co_return all;
}

// Returns this rank's terms of its own slice, rounded like those of other ranks. They are not encoded if that loses
// nothing.
template <class T>
Streams own_slice_stream(Communicator& comm, StreamInput<T>& terms, Slice slice) {
  Streams mine;
  if constexpr (std::is_same_v<T, float>) {
    bool const is_lossless = terms.form.values == kernels::StreamValues::kFloat;
    if (terms.keeps_array && is_lossless) {
      mine.add(comm.me(), {terms.keep, nullptr},
               kernels::view_in_place(terms.array.slice(slice.first, slice.size), slice.first));
      return mine;
    }
    if (terms.array.empty() && is_lossless) {
      auto listed = kernels::view_in_place(terms.stream, {terms.indices, terms.values, slice.first, slice.size});
      auto memory = std::make_shared<Bytes const>(std::move(listed.positions));
      mine.add(comm.me(), std::move(memory), std::move(listed.view));
      return mine;
    }
  }
  mine.add(comm, encode_slice(terms, slice));
  return mine;
}

}  // namespace

CoTask<Streams> allgather_streams(Communicator& comm, Bytes bytes, std::vector<Slice> ranges) {
  Streams mine;
  mine.add(comm, std::move(bytes));
  std::vector<SendRequest> sent;
  for (Rank const q : other_ranks(comm)) sent.push_back(send(comm, q, mine, 0));
  kernels::ValueForm const form = mine[0].form();
  return wait_incoming(comm, std::move(mine), form, std::move(ranges), std::move(sent));
}

template <class T>
CoTask<Streams> alltoall_streams(Communicator& comm, StreamInput<T> terms) {
  auto const slice = [&](Rank rank) { return slice_of(terms.size, comm.ranks(), rank); };
  Streams parts;  // encoding checks all before the first is sent
  for (Rank const q : other_ranks(comm)) parts.add(comm, encode_slice(terms, slice(q)));
  Streams const mine = own_slice_stream(comm, terms, slice(comm.me()));
  std::vector<SendRequest> sent;
  for (std::size_t i = 0; Rank const q : other_ranks(comm)) sent.push_back(send(comm, q, parts, i++));
  std::vector<Slice> const ranges(static_cast<std::size_t>(comm.ranks()), slice(comm.me()));
  return wait_incoming(comm, std::move(mine), terms.form, ranges, std::move(sent));
}

template <class T>
Bytes sum_streams(Communicator const& comm, Streams const& streams, StreamInput<T>& terms, View<T> residual) {
  auto sum = kernels::sum<T>(terms.stream, kernels::SumToStream<T>{streams.views(), terms.form, residual});
  check(comm, streams, sum.bad);
  return std::move(sum.bytes);
}

template CoTask<Streams> alltoall_streams(Communicator&, StreamInput<float>);
template CoTask<Streams> alltoall_streams(Communicator&, StreamInput<std::int64_t>);
template Bytes sum_streams(Communicator const&, Streams const&, StreamInput<float>&, View<float>);
template Bytes sum_streams(Communicator const&, Streams const&, StreamInput<std::int64_t>&, View<std::int64_t>);

}  // namespace gpups::comm
