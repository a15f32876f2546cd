// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "comm/collectives/allreduce/dense.hpp"
#include "kernels/sum/sum_arrays.hpp"

namespace gpups::comm {

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

}  // namespace gpups::comm
