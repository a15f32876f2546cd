// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "comm/collectives/sparse/exchange_streams.hpp"

namespace gpups::comm {
namespace {

template <class T>
CoTask<Streams> receive_whole(Communicator& comm, Rank from, std::size_t streams, StreamInput<T> const& terms) {
  return receive_streams(comm, from, std::vector<Slice>(streams, Slice{0, terms.size}), terms.form);
}

// Returns both inputs in an order that is the same on both ranks.
Streams in_order(Communicator const& comm, Rank partner, Streams const& mine, Streams const& its) {
  bool const first = number(comm.me()) < number(partner);
  Streams both;
  both.add(first ? mine : its);
  both.add(first ? its : mine);
  return both;
}

}  // namespace

template <class T>
CoTask<StreamSum<T>> sparse_allgather(Communicator& comm, StreamInput<T> terms) {
  Slice const whole{0, terms.size};
  std::vector<Slice> const ranges(static_cast<std::size_t>(comm.ranks()), whole);
  co_return StreamSum<T>(terms.stream, co_await allgather_streams(comm, encode_slice(terms, whole), ranges));
}

template CoTask<StreamSum<float>> sparse_allgather(Communicator&, StreamInput<float>);
template CoTask<StreamSum<std::int64_t>> sparse_allgather(Communicator&, StreamInput<std::int64_t>);

// Ranks from the largest power of two on send their input to a rank below it and receive the result from that rank. All
// ranks that have the same partial sum lose the same when it is encoded; the first of them puts the loss into its
// residual. The last sum is not sent: its two terms are the result.
template <class T>
CoTask<StreamSum<T>> ssar_recursive_doubling(Communicator& comm, StreamInput<T> terms) {
  auto const me = number(comm.me()), ranks = static_cast<std::uint32_t>(comm.ranks());
  std::uint32_t const power_of_two = std::bit_floor(ranks);
  Streams mine;
  mine.add(comm, encode_slice(terms, {0, terms.size}));
  auto const set_sum = [&](Streams const& both, bool keeps_residual) {
    View<T> const residual = keeps_residual ? terms.residual : View<T>{};
    mine = {};
    mine.add(comm, sum_streams(comm, both, terms, residual));
  };
  if (me >= power_of_two) {
    Rank const partner_below{me - power_of_two};
    send(comm, partner_below, mine, 0);
    co_return StreamSum<T>(terms.stream, co_await receive_whole(comm, partner_below, 2, terms));
  }
  Rank const extra_partner{me + power_of_two};
  if (me + power_of_two < ranks) {
    Streams const its = co_await receive_whole(comm, extra_partner, 1, terms);
    set_sum(in_order(comm, extra_partner, mine, its), true);
  }
  for (std::uint32_t distance = 1; distance < power_of_two; distance *= 2) {
    Rank const partner{me ^ distance};
    auto sent = send(comm, partner, mine, 0);
    Streams const its = co_await receive_whole(comm, partner, 1, terms);
    co_await sent;  // this rank makes no progress while it adds
    Streams const both = in_order(comm, partner, mine, its);
    if (2 * distance == power_of_two) {
      mine = both;
    } else {
      set_sum(both, me % (2 * distance) == 0);
    }
  }
  if (me + power_of_two < ranks) send_concatenated(comm, extra_partner, mine);
  co_return StreamSum<T>(terms.stream, std::move(mine));
}

template CoTask<StreamSum<float>> ssar_recursive_doubling(Communicator&, StreamInput<float>);
template CoTask<StreamSum<std::int64_t>> ssar_recursive_doubling(Communicator&, StreamInput<std::int64_t>);

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
