// SPDX-License-Identifier: Apache-2.0
// Numbers the elements that satisfy a condition, in order: the parallel form of `if (pick(i)) emit(i, count++)`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/runtime/read_back.hpp"
#include "kernels/runtime/segments.hpp"

#ifdef __CUDACC__
#include <cub/device/device_scan.cuh>

#include "kernels/runtime/device_scratch.hpp"
#endif

namespace gpups::kernels {

// Calls emit(i, rank) for each i < n for which pick(i) is true; rank is the number of smaller i for which it is.
// Returns the number of calls. wait_compact() waits for the stream; compact() is for the host only. REQUIRES: n < 2^32
// - 1; emit(i) does not change pick(k) of any other k.
//
// compact_lists() does so for many lists, which have less than 2^32 - 1 items together: calls pick(list, i) and
// emit(list, i, rank) for each i < size(list), and writes the number of calls of emit() for list k to counts[k]. It
// does not wait.
#ifdef __CUDACC__
template <class Pick, class Emit>
std::size_t wait_compact(DeviceExec ex, Device device, std::size_t n, Pick pick, Emit emit) {
  if (n == 0) return 0;
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  Array<std::uint32_t> ranks(device, n + 1);
  std::uint32_t* const rank = ranks.data();
  each(ex, n + 1, [=] GPUPS_FN(std::size_t i) { rank[i] = i < n && pick(i) ? 1 : 0; });
  auto const scratch = run_with_scratch(ex, device, [&](void* memory, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(memory, bytes, rank, rank, static_cast<std::int64_t>(n + 1), stream);
  });
  each(ex, n, [=] GPUPS_FN(std::size_t i) {
    if (rank[i + 1] != rank[i]) emit(i, rank[i]);
  });
  return wait_read(ex, rank + n, "reading a count");
}

// A list with its size, the number of its first item over all lists, and its own number.
template <class T>
struct CompactedList {
  T list;
  std::size_t size, first;
  std::uint32_t number;
};

template <class T, class Pick, class Emit>
void compact_lists(DeviceExec ex, std::span<T const> lists, std::vector<std::size_t> const& sizes,
                   View<std::uint32_t> counts, Pick pick, Emit emit) {
  std::vector<CompactedList<T>> all;
  std::size_t n = 0;
  for (auto const& list : lists) {
    std::size_t const size = sizes[all.size()];
    all.push_back({list, size, n, static_cast<std::uint32_t>(all.size())});
    n += size;
  }
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  check_cuda(cudaMemsetAsync(counts.data(), 0, lists.size() * sizeof(std::uint32_t), stream), "clearing counts");
  if (n == 0) return;
  StreamScratch const ranks(ex, (n + 1) * sizeof(std::uint32_t));
  auto* const rank = static_cast<std::uint32_t*>(ranks.data());
  check_cuda(cudaMemsetAsync(rank + n, 0, sizeof *rank, stream), "clearing a count");
  SegmentList const sent(ex, std::move(all), [](CompactedList<T> const& l) { return l.size; });
  each_item(ex, sent.segments(), [rank, pick] GPUPS_FN(CompactedList<T> const& l, std::size_t i) {
    rank[l.first + i] = pick(l.list, i) ? 1 : 0;
  });
  run_in_stream(ex, [&](void* memory, std::size_t& bytes) {
    return cub::DeviceScan::ExclusiveSum(memory, bytes, rank, rank, static_cast<std::int64_t>(n + 1), stream);
  });
  each_item(ex, sent.segments(), [rank, counts, emit] GPUPS_FN(CompactedList<T> const& l, std::size_t i) {
    std::uint32_t const* const here = rank + l.first + i;
    std::uint32_t const before = rank[l.first];
    if (here[1] != here[0]) emit(l.list, i, here[0] - before);
    if (i + 1 == l.size) counts[l.number] = here[1] - before;
  });
}
#else
template <class Pick, class Emit>
std::size_t compact(HostExec ex, std::size_t n, Pick pick, Emit emit) {
  std::size_t const blocks = (n + kBlockElements - 1) / kBlockElements;
  auto const end = [=](std::size_t block) {
    return (block + 1) * kBlockElements < n ? (block + 1) * kBlockElements : n;
  };
  std::vector<std::size_t> start(blocks + 1, 0);
  ex.arena->blocks(blocks, [&](std::size_t block) {
    std::size_t count = 0;
    for (std::size_t i = block * kBlockElements; i < end(block); ++i) count += pick(i) ? 1 : 0;
    start[block + 1] = count;
  });
  for (std::size_t b = 0; b < blocks; ++b) start[b + 1] += start[b];
  ex.arena->blocks(blocks, [&](std::size_t block) {
    if (start[block] == start[block + 1]) return;
    std::size_t rank = start[block];
    for (std::size_t i = block * kBlockElements; i < end(block); ++i) {
      if (pick(i)) emit(i, static_cast<std::uint32_t>(rank++));
    }
  });
  return start[blocks];
}
template <class Pick, class Emit>
std::size_t wait_compact(HostExec ex, Device, std::size_t n, Pick pick, Emit emit) {
  if (n == 0) return 0;
  wait_for(ex, "waiting for a count");
  return compact(ex, n, pick, emit);
}

template <class T, class Pick, class Emit>
void compact_lists(HostExec ex, std::span<T const> lists, std::vector<std::size_t> const& sizes,
                   View<std::uint32_t> counts, Pick pick, Emit emit) {
  for (std::size_t k = 0; k < lists.size(); ++k) {
    T const& list = lists[k];
    counts[k] = static_cast<std::uint32_t>(compact(
        ex, sizes[k], [&](std::size_t i) { return pick(list, i); },
        [&](std::size_t i, std::uint32_t rank) { emit(list, i, rank); }));
  }
}
#endif

}  // namespace gpups::kernels
