// SPDX-License-Identifier: Apache-2.0
#include <bit>

#include "comm/collective/exchange_streams.hpp"

namespace gpups::comm {
namespace {

template <class T>
Task<Streams> receive_whole(Mesh& mesh, Rank from, std::size_t streams, StreamTerms<T> const& terms) {
  return receive_streams(mesh, from, std::vector<Slice>(streams, Slice{0, terms.size}), terms.form);
}

// In an order that both ranks of a pair have.
Streams in_order(Mesh const& mesh, Rank partner, Streams const& mine, Streams const& its) {
  bool const first = number(mesh.me()) < number(partner);
  Streams both;
  both.add(first ? mine : its);
  both.add(first ? its : mine);
  return both;
}

}  // namespace

// The ranks from the largest power of two on give what they have to one of those below, and get the result from it.
// All ranks of a group have the same sums, and lose the same by their form: its first rank keeps that. The last sum is
// not sent: its two terms are the result.
template <class T>
Task<StreamTotal<T>> sum_by_doubling_sparse(Mesh& mesh, StreamTerms<T> terms) {
  auto const me = number(mesh.me()), ranks = static_cast<std::uint32_t>(mesh.ranks());
  std::uint32_t const core = std::bit_floor(ranks);
  Streams mine;
  mine.add(mesh, encode_part(terms, {0, terms.size}));
  auto const take_sum = [&](Streams const& both, bool keeps_loss) {
    View<T> const residual = keeps_loss ? terms.residual : View<T>{};
    mine = {};
    mine.add(mesh, sum_streams(mesh, both, terms, residual));
  };
  if (me >= core) {
    Rank const helper{me - core};
    send(mesh, helper, mine, 0);
    co_return StreamTotal<T>(terms.stream, co_await receive_whole(mesh, helper, 2, terms));
  }
  Rank const helped{me + core};
  if (me + core < ranks) {
    Streams const its = co_await receive_whole(mesh, helped, 1, terms);
    take_sum(in_order(mesh, helped, mine, its), true);
  }
  for (std::uint32_t distance = 1; distance < core; distance *= 2) {
    Rank const partner{me ^ distance};
    auto sent = send(mesh, partner, mine, 0);
    Streams const its = co_await receive_whole(mesh, partner, 1, terms);
    co_await sent;  // while this rank adds up, it would bring nothing on its way
    Streams const both = in_order(mesh, partner, mine, its);
    if (2 * distance == core) {
      mine = both;
    } else {
      take_sum(both, me % (2 * distance) == 0);
    }
  }
  if (me + core < ranks) send_together(mesh, helped, mine);
  co_return StreamTotal<T>(terms.stream, std::move(mine));
}

template Task<StreamTotal<float>> sum_by_doubling_sparse(Mesh&, StreamTerms<float>);
template Task<StreamTotal<std::int64_t>> sum_by_doubling_sparse(Mesh&, StreamTerms<std::int64_t>);

}  // namespace gpups::comm
