// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <utility>
#include <vector>

#include "comm/collectives/allreduce/dense.hpp"
#include "kernels/sum/sum_arrays.hpp"

namespace gpups::comm {
namespace {

using Values = std::shared_ptr<Array<float>>;

SendRequest send(Communicator& comm, Rank to, Values const& values) {
  return comm.send_fixed(to, bytes_of(values->view()), values);
}

CoTask<Values> receive(Communicator& comm, Rank from, std::size_t n) {
  auto const values = std::make_shared<Array<float>>(comm.stream().device(), n);
  co_await comm.receive_fixed(from, bytes_of(values->view()), values);
  co_return values;
}

// Adds in an order that is the same on both ranks of a pair, into new memory, because the terms may still be in flight.
// Ends when the sums are complete: any stream may then reuse the memory of the terms.
CoTask<Values> sum(Communicator& comm, Rank partner, Values mine, Values its) {
  auto sums = std::make_shared<Array<float>>(comm.stream().device(), mine->size());
  bool const first = number(comm.me()) < number(partner);
  View<float const> const arrays[] = {first ? mine->view() : its->view(), first ? its->view() : mine->view()};
  kernels::sum_arrays(comm.stream(), {.arrays = arrays, .sums = *sums});
  co_await comm.stream_done();
  co_return sums;
}

CoTask<Values> exchange_sum(Communicator& comm, Rank partner, Values mine) {
  send(comm, partner, mine);
  auto const its = co_await receive(comm, partner, mine->size());
  co_return co_await sum(comm, partner, mine, its);
}

}  // namespace

// Sends a copy of the terms, so that the algorithm need not wait until they are sent.
CoTask<> eager_allreduce(Communicator& comm, DenseAllreduce of) {
  auto& stream = comm.stream();
  auto const ranks = static_cast<std::uint32_t>(comm.ranks());
  std::size_t const n = of.terms.size();
  auto const terms = std::make_shared<Array<float>>(stream.device(), ranks * n);  // (ranks, n)
  auto const of_rank = [&terms, n](Rank rank) { return terms->view().slice(number(rank) * n, n); };
  copy<float>(stream, of_rank(comm.me()), of.terms);
  std::vector<Request> arriving;
  for (Rank const q : other_ranks(comm)) {
    comm.send_fixed(q, bytes_of(of_rank(comm.me())), terms);
    arriving.push_back(comm.receive_fixed(q, bytes_of(of_rank(q)), terms));
  }
  for (auto& of_another : arriving) co_await of_another;
  std::vector<View<float const>> arrays;
  for (std::uint32_t q = 0; q < ranks; ++q) arrays.push_back(of_rank(Rank{q}));
  kernels::sum_arrays(stream, {.arrays = arrays, .sums = of.values});
  co_await comm.stream_done();  // any stream may then reuse the memory of the terms
}

// Ranks from the largest power of two on send their terms to a rank below it and receive the sums from that rank.
CoTask<> recursive_doubling(Communicator& comm, DenseAllreduce of) {
  auto const me = number(comm.me()), ranks = static_cast<std::uint32_t>(comm.ranks());
  std::uint32_t const power_of_two = std::bit_floor(ranks);
  std::size_t const n = of.values.size();
  auto mine = std::make_shared<Array<float>>(comm.stream().device(), n);
  copy<float>(comm.stream(), *mine, of.terms);
  if (me >= power_of_two) {
    send(comm, Rank{me - power_of_two}, mine);
    mine = co_await receive(comm, Rank{me - power_of_two}, n);
  } else {
    bool const has_extra_partner = me + power_of_two < ranks;
    if (has_extra_partner) {
      auto const its = co_await receive(comm, Rank{me + power_of_two}, n);
      mine = co_await sum(comm, Rank{me + power_of_two}, mine, its);
    }
    for (std::uint32_t distance = 1; distance < power_of_two; distance *= 2) {
      mine = co_await exchange_sum(comm, Rank{me ^ distance}, mine);
    }
    if (has_extra_partner) send(comm, Rank{me + power_of_two}, mine);
  }
  copy<float>(comm.stream(), of.values, *mine);
  co_await comm.stream_done();
}

}  // namespace gpups::comm
