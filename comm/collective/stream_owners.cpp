// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/exchange_streams.hpp"

namespace gpups::comm {

template <class T>
Task<StreamTotal<T>> send_to_owners(Mesh& mesh, StreamTerms<T> terms) {
  co_return StreamTotal<T>(terms.stream, co_await scatter_streams(mesh, terms));
}

template <class T>
Task<StreamTotal<T>> sum_by_owners(Mesh& mesh, StreamTerms<T> terms) {
  Streams const parts = co_await scatter_streams(mesh, terms);
  std::vector<Slice> const slices = slices_of(terms.size, mesh.ranks());
  Slice const mine = slices[number(mesh.me())];
  co_return StreamTotal<T>(
      terms.stream,
      co_await gather_streams(mesh, sum_streams(mesh, parts, terms, part_of(terms.residual, mine)), slices));
}

template Task<StreamTotal<float>> send_to_owners(Mesh&, StreamTerms<float>);
template Task<StreamTotal<std::int64_t>> send_to_owners(Mesh&, StreamTerms<std::int64_t>);
template Task<StreamTotal<float>> sum_by_owners(Mesh&, StreamTerms<float>);
template Task<StreamTotal<std::int64_t>> sum_by_owners(Mesh&, StreamTerms<std::int64_t>);

}  // namespace gpups::comm
