// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/exchange_streams.hpp"

#include "comm/collective/others.hpp"

namespace gpups::comm {
namespace {

// `mine`, and what comes from the others, in order of the ranks. By then the others have what was sent to them: while
// this rank adds up, it would bring nothing on its way, and they would wait for that.
Task<Streams> with_incoming(Mesh& mesh, Streams mine, kernels::ValueForm form, std::vector<Slice> ranges,
                            std::vector<Sending> sent) {
  std::vector<Task<Streams>> incoming(ranges.size());
  for (Rank const q : others(mesh)) {
    std::vector<Slice> const range{ranges[number(q)]};
    incoming[number(q)] = receive_streams(mesh, q, range, form);
    incoming[number(q)].start();
  }
  Streams all;
  for (std::uint32_t r = 0; r < ranges.size(); ++r) {
    if (Rank{r} == mesh.me()) {
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

// This rank's terms of its own slice as others would get them; what would lose nothing stays where it is.
template <class T>
Streams own_part(Mesh& mesh, StreamTerms<T>& terms, Slice slice) {
  Streams mine;
  if constexpr (std::is_same_v<T, float>) {
    bool const loses_nothing = terms.form.values == kernels::StreamValues::kFloat;
    if (terms.array_stays && loses_nothing) {
      mine.add(mesh.me(), {terms.keep, nullptr},
               kernels::view_in_place(terms.array.slice(slice.first, slice.size), slice.first));
      return mine;
    }
    if (terms.array.empty() && loses_nothing) {
      auto listed = kernels::view_in_place(terms.stream, {terms.indices, terms.values, slice.first, slice.size});
      auto memory = std::make_shared<Bytes const>(std::move(listed.places));
      mine.add(mesh.me(), std::move(memory), std::move(listed.view));
      return mine;
    }
  }
  mine.add(mesh, encode_part(terms, slice));
  return mine;
}

}  // namespace

Task<Streams> gather_streams(Mesh& mesh, Bytes bytes, std::vector<Slice> ranges) {
  Streams mine;
  mine.add(mesh, std::move(bytes));
  std::vector<Sending> sent;
  for (Rank const q : others(mesh)) sent.push_back(send(mesh, q, mine, 0));
  kernels::ValueForm const form = mine[0].form();
  return with_incoming(mesh, std::move(mine), form, std::move(ranges), std::move(sent));
}

template <class T>
Task<Streams> scatter_streams(Mesh& mesh, StreamTerms<T> terms) {
  auto const slice = [&](Rank rank) { return slice_of(terms.size, mesh.ranks(), rank); };
  Streams parts;  // all are checked before the first is sent
  for (Rank const q : others(mesh)) parts.add(mesh, encode_part(terms, slice(q)));
  Streams const mine = own_part(mesh, terms, slice(mesh.me()));
  std::vector<Sending> sent;
  for (std::size_t i = 0; Rank const q : others(mesh)) sent.push_back(send(mesh, q, parts, i++));
  std::vector<Slice> const ranges(static_cast<std::size_t>(mesh.ranks()), slice(mesh.me()));
  return with_incoming(mesh, std::move(mine), terms.form, ranges, std::move(sent));
}

template <class T>
Bytes sum_streams(Mesh const& mesh, Streams const& streams, StreamTerms<T>& terms, View<T> residual) {
  auto sum = kernels::sum<T>(terms.stream, kernels::SumToStream<T>{streams.views(), terms.form, residual});
  check(mesh, streams, sum.bad);
  return std::move(sum.bytes);
}

template Task<Streams> scatter_streams(Mesh&, StreamTerms<float>);
template Task<Streams> scatter_streams(Mesh&, StreamTerms<std::int64_t>);
template Bytes sum_streams(Mesh const&, Streams const&, StreamTerms<float>&, View<float>);
template Bytes sum_streams(Mesh const&, Streams const&, StreamTerms<std::int64_t>&, View<std::int64_t>);

}  // namespace gpups::comm
