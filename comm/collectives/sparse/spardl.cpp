// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>

#include "comm/collectives/sparse/exchange_streams.hpp"
#include "kernels/base/assert.hpp"
#include "kernels/sparse/sum_streams.hpp"
#include "kernels/sparse/top_k.hpp"
#include "kernels/sparse/unit_values.hpp"

namespace gpups::comm {
namespace {

// Keeps the `k` elements of largest magnitude. Adds the others to `residual`, which covers the range that begins at
// `first`, unless it is empty.
template <class T>
void truncate_to_k(Stream& stream, kernels::SumEntries<T>& list, std::size_t k, View<T> residual, std::uint64_t first) {
  std::size_t const count = list.indices.size();
  if (count <= k) return;
  Array<float> const magnitudes(Device::host(), count), kept_magnitudes(Device::host(), k);
  Array<std::uint32_t> kept(Device::host(), k);  // positions in the list, later indices
  for (std::size_t i = 0; i < count; ++i) magnitudes[i] = std::abs(static_cast<float>(list.values[i]));
  std::size_t const left =
      kernels::wait_top_k(stream, {.values = magnitudes, .k = k, .indices = kept, .kept = kept_magnitudes}).count;
  Array<T> values(Device::host(), left);
  std::size_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (next < left && kept[next] == i) {
      kept[next] = list.indices[i];
      values[next++] = list.values[i];
    } else if (!residual.empty()) {
      T& lost = residual[list.indices[i] - first];
      lost = kernels::plus(lost, list.values[i]);
    }
  }
  GPUPS_ASSERT(left == k);
  list.indices = std::move(kept);
  list.values = std::move(values);
}

// This rank's part of the sums of all slices on their way to their owners. A rank that forwards a slice adds its own
// elements to the received ones; elements beyond the k largest go to its residual.
template <class T>
class SlicesInTransit {
 public:
  SlicesInTransit(Communicator& comm, StreamInput<T>& terms, std::size_t k_per_slice)
      : comm_(comm), terms_(terms), k_per_slice_(k_per_slice), ranges_(slices_of_ranks(terms.size, comm.ranks())) {
    received_.resize(ranges_.size());
  }

  std::vector<Slice> const& ranges() const { return ranges_; }
  void add(Rank slice, Streams const& streams, std::size_t i) { received_[number(slice)].add(streams, i); }

  // Returns the stream of a slice to forward: received and own elements, summed and truncated.
  Bytes sum(Rank slice) {
    Slice const range = ranges_[number(slice)];
    Streams parts;
    parts.add(comm_,
              kernels::encode<T>(
                  terms_.stream,
                  {terms_.indices, terms_.values, range.first, range.size, {lossless(), terms_.form.grid_log2}}));
    parts.add(received_[number(slice)]);
    auto list = kernels::sum<T>(terms_.stream, kernels::SumToEntries<T>{parts.views()});
    check(comm_, parts, list.bad);
    View<T> const residual = slice_or_empty(terms_.residual, range);
    truncate_to_k(terms_.stream, list, k_per_slice_, residual, range.first);
    return kernels::encode<T>(terms_.stream,
                              {list.indices, list.values, range.first, range.size, terms_.form, residual});
  }

 private:
  static constexpr kernels::StreamValues lossless() {
    return std::is_same_v<T, float> ? kernels::StreamValues::kFloat : kernels::StreamValues::kUnits;
  }

  Communicator& comm_;
  StreamInput<T>& terms_;
  std::size_t const k_per_slice_;  // elements of a slice
  std::vector<Slice> const ranges_;
  std::vector<Streams> received_;  // by slice
};

}  // namespace

// A slice travels by the binary digits of its distance, the largest first. So a rank sends log2(ranks) messages, for
// any number of ranks. A slice is summed and truncated just before it is sent, when everything that takes the same path
// has arrived.
template <class T>
CoTask<StreamSum<T>> spardl(Communicator& comm, StreamInput<T> terms, std::size_t k) {
  auto const me = number(comm.me()), ranks = static_cast<std::uint32_t>(comm.ranks());
  auto const rank_at = [&](std::uint32_t distance) { return Rank{(me + distance) % ranks}; };
  SlicesInTransit<T> slices(comm, terms, std::max<std::size_t>(1, k / ranks));
  for (std::uint32_t distance_of_hop = std::bit_floor(ranks - 1); distance_of_hop > 0; distance_of_hop /= 2) {
    std::uint32_t const end = std::min(2 * distance_of_hop, ranks);
    Streams outgoing;
    std::vector<Slice> expected;
    for (std::uint32_t distance = distance_of_hop; distance < end; ++distance) {
      outgoing.add(comm, slices.sum(rank_at(distance)));
      expected.push_back(slices.ranges()[number(rank_at(distance - distance_of_hop))]);
    }
    send_concatenated(comm, rank_at(distance_of_hop), outgoing);
    Streams const received = co_await receive_streams(comm, rank_at(ranks - distance_of_hop), expected, terms.form);
    for (std::size_t i = 0; i < received.size(); ++i) slices.add(rank_at(static_cast<std::uint32_t>(i)), received, i);
  }
  co_return StreamSum<T>(terms.stream, co_await allgather_streams(comm, slices.sum(comm.me()), slices.ranges()));
}

template CoTask<StreamSum<float>> spardl(Communicator&, StreamInput<float>, std::size_t);
template CoTask<StreamSum<std::int64_t>> spardl(Communicator&, StreamInput<std::int64_t>, std::size_t);

}  // namespace gpups::comm
