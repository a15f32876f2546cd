// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "comm/collectives/sparse/algorithms.hpp"

namespace gpups::comm {
namespace {

// Calls f(streams) for the terms of each range, in order.
template <class F>
void each_range(Streams const& streams, F f) {
  for (std::size_t first = 0, last; first < streams.size(); first = last) {
    last = first + 1;
    while (last < streams.size() && streams[last].header().first == streams[first].header().first &&
           streams[last].header().size == streams[first].header().size) {
      ++last;
    }
    Streams terms;
    for (std::size_t i = first; i < last; ++i) terms.add(streams, i);
    f(terms);
  }
}

}  // namespace

template <class T>
void StreamSum<T>::write(Communicator const& comm, View<T> into, bool add) {
  if (streams_.size() == 0) return;
  std::uint64_t const begin = streams_[0].header().first;
  each_range(streams_, [&](Streams const& terms) {
    auto const& header = terms[0].header();
    View<T> const part = into.slice(header.first - begin, header.size);
    check(comm, terms, kernels::sum<T>(stream_, kernels::SumToDense<T>{terms.views(), part, add}));
  });
}

template <class T>
typename StreamSum<T>::SumElements StreamSum<T>::entries(Communicator const& comm) {
  std::vector<kernels::SumEntries<T>> parts;
  std::size_t count = 0;
  each_range(streams_, [&](Streams const& terms) {
    parts.push_back(kernels::sum<T>(stream_, kernels::SumToEntries<T>{terms.views()}));
    check(comm, terms, parts.back().bad);
    count += parts.back().indices.size();
  });
  if (parts.size() == 1) return {std::move(parts[0].indices), std::move(parts[0].values)};
  SumElements all{Array<std::uint32_t>(Device::host(), count), Array<T>(Device::host(), count)};
  std::size_t at = 0;
  for (auto const& part : parts) {
    std::copy_n(part.indices.data(), part.indices.size(), all.indices.data() + at);
    std::copy_n(part.values.data(), part.values.size(), all.values.data() + at);
    at += part.indices.size();
  }
  return all;
}

template class StreamSum<float>;
template class StreamSum<std::int64_t>;

}  // namespace gpups::comm
