// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/sparse/streams.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "comm/collectives/sparse/algorithms.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

// Streams in one message begin at multiples of this.
constexpr std::size_t kPaddingBytes = 8;
std::size_t padded(std::size_t bytes) { return (bytes + kPaddingBytes - 1) / kPaddingBytes * kPaddingBytes; }

constexpr std::uint64_t kPlainElementBytes = sizeof(std::uint32_t) + sizeof(float);  // an index and a value

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

std::size_t stream_bytes_max(std::uint64_t size) {
  // Values of 8 bytes, and positions that take no more than a bitmap; each block is padded.
  std::size_t const blocks = kernels::stream_blocks(size);
  return kernels::stream_head_bytes(blocks) + 8 * size + size / 8 + 16 * blocks;
}

// A dense block does not have the number of its nonzero elements.
std::uint64_t uncompressed_bytes(kernels::StreamView const& stream) {
  std::uint64_t bytes = 0;
  for (auto const& block : stream.blocks()) {
    bytes += std::min(kPlainElementBytes * block.word.count, sizeof(float) * block.width);
  }
  return bytes;
}

SendRequest send_concatenated(Communicator& comm, Rank to, Streams const& streams) {
  std::vector<std::size_t> start{0};  // of each stream, and the end of the last
  for (std::size_t i = 0; i < streams.size(); ++i) start.push_back(padded(start[i]) + streams[i].bytes());
  Bytes all(Device::host(), start.back());
  for (std::size_t i = 0; i < streams.size(); ++i) {
    std::memset(all.data() + start[i], 0, padded(start[i]) - start[i]);
    std::memcpy(all.data() + padded(start[i]), streams.bytes(i).data(), streams[i].bytes());
  }
  std::uint64_t plain = 0;
  for (auto const& stream : streams.views()) plain += uncompressed_bytes(stream);
  comm.count_compression(plain, all.size());
  return comm.send(to, std::move(all));
}

CoTask<Streams> receive_streams(Communicator& comm, Rank from, std::vector<Slice> ranges, kernels::ValueForm form) {
  std::size_t bytes_max = 0;
  for (Slice const range : ranges) bytes_max += padded(stream_bytes_max(range.size));
  auto const memory = std::make_shared<Bytes const>(co_await comm.receive(from, bytes_max, Device::host()));
  Streams streams;
  std::size_t at = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    View<std::uint8_t const> const rest = memory->view().slice(at, memory->size() - at);
    bool const last = i + 1 == ranges.size();
    std::size_t const bytes = last ? rest.size() : std::min(rest.size(), kernels::stream_bytes(rest));
    kernels::StreamView stream(rest.slice(0, bytes));
    if (!stream.error().empty()) {
      comm.throw_peer_error(from, fmt::format("sent an invalid sparse stream: {}", stream.error()));
    }
    if (stream.header().first != ranges[i].first || stream.header().size != ranges[i].size) {
      comm.throw_peer_error(
          from, fmt::format("sent a sparse stream of {} elements from index {} on, not of {} from index {} on",
                            stream.header().size, stream.header().first, ranges[i].size, ranges[i].first));
    }
    if (stream.form() != form) {
      comm.throw_peer_error(
          from, fmt::format("sent a sparse stream of values in form {} on grid {}, not in form {} on grid {}",
                            static_cast<int>(stream.form().values), stream.form().grid_log2,
                            static_cast<int>(form.values), form.grid_log2));
    }
    streams.add(from, memory, std::move(stream));
    at = std::min(padded(at + bytes), memory->size());
  }
  co_return streams;
}

void check(Communicator const& comm, Streams const& streams, kernels::BadStream bad) {
  if (!bad) return;
  comm.throw_peer_error(streams.from(*bad),
                        "sent a sparse stream whose positions do not match the header word of their block");
}

void check_indices(std::uint64_t size, View<std::uint32_t const> indices) {
  std::uint32_t largest = 0, descents = 0;  // without branches, at the speed of memory
  for (std::size_t i = 0; i < indices.size(); ++i) largest = std::max(largest, indices[i]);
  for (std::size_t i = 1; i < indices.size(); ++i) descents |= indices[i] <= indices[i - 1] ? 1U : 0U;
  GPUPS_REQUIRE(indices.empty() || largest < size,
                "a sparse vector of {} elements has the index {} (indices must be below the size): give "
                "indices of this vector",
                size, largest);
  GPUPS_REQUIRE(descents == 0,
                "the indices of a sparse vector are not strictly ascending (equal ones would be summed at the same "
                "time): sort them, and add the values of equal ones");
}

void check_last_index(std::uint64_t size, View<std::uint32_t const> indices) {
  if (std::lower_bound(indices.begin(), indices.end(), size) != indices.end()) check_indices(size, indices);
}

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
