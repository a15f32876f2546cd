// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <utility>
#include <vector>

#include "comm/collective/dense.hpp"
#include "kernels/sum_arrays.hpp"

namespace gpups::comm {
namespace {

using Values = std::shared_ptr<Array<float>>;

Sending send(Mesh& mesh, Rank to, Values const& values) {
  return mesh.send_exactly(to, bytes_of(values->view()), values);
}

Task<Values> receive(Mesh& mesh, Rank from, std::size_t n) {
  auto const values = std::make_shared<Array<float>>(mesh.stream().device(), n);
  co_await mesh.receive_exactly(from, bytes_of(values->view()), values);
  co_return values;
}

// In an order that both ranks of a pair have; sums go to new memory, since what they were made of may be on its way.
// Ends when they are made: any stream may take the memory of the terms from then on.
Task<Values> sum(Mesh& mesh, Rank partner, Values mine, Values its) {
  auto sums = std::make_shared<Array<float>>(mesh.stream().device(), mine->size());
  bool const first = number(mesh.me()) < number(partner);
  View<float const> const arrays[] = {first ? mine->view() : its->view(), first ? its->view() : mine->view()};
  kernels::sum_arrays(mesh.stream(), {.arrays = arrays, .sums = *sums});
  co_await mesh.caught_up();
  co_return sums;
}

Task<Values> exchange_sum(Mesh& mesh, Rank partner, Values mine) {
  send(mesh, partner, mine);
  auto const its = co_await receive(mesh, partner, mine->size());
  co_return co_await sum(mesh, partner, mine, its);
}

}  // namespace

// The ranks from the largest power of two on give what they have to one of those below, and get the sums from it.
Task<> sum_by_doubling(Mesh& mesh, DenseSum of) {
  auto const me = number(mesh.me()), ranks = static_cast<std::uint32_t>(mesh.ranks());
  std::uint32_t const core = std::bit_floor(ranks);
  std::size_t const n = of.values.size();
  auto mine = std::make_shared<Array<float>>(mesh.stream().device(), n);
  copy<float>(mesh.stream(), *mine, of.terms);
  if (me >= core) {
    send(mesh, Rank{me - core}, mine);
    mine = co_await receive(mesh, Rank{me - core}, n);
  } else {
    bool const for_another = me + core < ranks;
    if (for_another) {
      auto const its = co_await receive(mesh, Rank{me + core}, n);
      mine = co_await sum(mesh, Rank{me + core}, mine, its);
    }
    for (std::uint32_t distance = 1; distance < core; distance *= 2) {
      mine = co_await exchange_sum(mesh, Rank{me ^ distance}, mine);
    }
    if (for_another) send(mesh, Rank{me + core}, mine);
  }
  copy<float>(mesh.stream(), of.values, *mine);
  co_await mesh.caught_up();
}

}  // namespace gpups::comm
