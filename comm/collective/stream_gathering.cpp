// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/exchange_streams.hpp"

namespace gpups::comm {

template <class T>
Task<StreamTotal<T>> sum_by_gathering(Mesh& mesh, StreamTerms<T> terms) {
  Slice const whole{0, terms.size};
  std::vector<Slice> const ranges(static_cast<std::size_t>(mesh.ranks()), whole);
  co_return StreamTotal<T>(terms.stream, co_await gather_streams(mesh, encode_part(terms, whole), ranges));
}

template Task<StreamTotal<float>> sum_by_gathering(Mesh&, StreamTerms<float>);
template Task<StreamTotal<std::int64_t>> sum_by_gathering(Mesh&, StreamTerms<std::int64_t>);

}  // namespace gpups::comm
