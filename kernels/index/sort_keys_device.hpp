// SPDX-License-Identifier: Apache-2.0
// Sorts lists of keys on a GPU: all keys together by value, and then, stably, by list.
#pragma once

#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <utility>
#include <vector>

#include "kernels/index/sort_keys.hpp"
#include "kernels/runtime/device_scratch.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

inline void sort_lists(DeviceExec ex, std::vector<SortedKeys> lists) {
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  int const list_bits = static_cast<int>(std::bit_width(lists.size() - 1));
  SegmentList<SortedKeys, 1, SentSegments::kAny> const all(ex, std::move(lists),
                                                           [](SortedKeys const& list) { return list.keys.size(); });
  auto const segments = all.segments();
  std::size_t const n = all.items();
  auto const count = static_cast<std::int32_t>(n);
  // Two arrays of each kind, which the sorts read and write by turns.
  StreamScratch const memory(ex, 2 * n * sizeof(std::uint64_t) + 4 * n * sizeof(std::uint32_t));
  auto* const key = static_cast<std::uint64_t*>(memory.data());
  auto* const sorted_key = key + n;
  auto* const item = reinterpret_cast<std::uint32_t*>(sorted_key + n);
  auto *const by_key = item + n, *const list_of = by_key + n, *const sorted_list = list_of + n;
  each(ex, n, [=] GPUPS_FN(std::size_t i) {
    std::uint32_t const s = segments.segment_of(i);
    key[i] = number(segments.list[s].keys[i - segments.first[s]]);
    item[i] = static_cast<std::uint32_t>(i);
  });
  run_in_stream(ex, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, key, sorted_key, item, by_key, count, 0, 64, stream);
  });
  std::uint32_t const* order = by_key;
  if (list_bits > 0) {
    each(ex, n, [=] GPUPS_FN(std::size_t i) { list_of[i] = segments.segment_of(by_key[i]); });
    run_in_stream(ex, [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(scratch, bytes, list_of, sorted_list, by_key, item, count, 0, list_bits,
                                             stream);
    });
    order = item;
  }
  each(ex, n, [=] GPUPS_FN(std::size_t i) {
    std::uint32_t const s = segments.segment_of(i);
    SortedKeys const& list = segments.list[s];
    std::size_t const from = order[i] - segments.first[s], to = i - segments.first[s];
    list.sorted[to] = list.keys[from];
    list.positions[to] = list.first + static_cast<std::uint32_t>(from);
  });
}

}  // namespace gpups::kernels
