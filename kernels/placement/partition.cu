// SPDX-License-Identifier: Apache-2.0
#include "kernels/placement/partition.hpp"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"
#ifdef __CUDACC__
#include <cub/device/device_radix_sort.cuh>

#include "kernels/runtime/device_scratch.hpp"
#endif

namespace gpups::kernels {

#ifdef __CUDACC__
// Sorts the items by their list.
inline void write_lists(DeviceExec ex, PartitionItems const& p) {
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  std::size_t const n = p.list_of.size();
  StreamScratch const memory(ex, 3 * n * sizeof(std::uint32_t));
  auto* const list = static_cast<std::uint32_t*>(memory.data());
  auto *const sorted = list + n, *const item = sorted + n;
  each(ex, n, [=, list_of = p.list_of, lists = p.lists] GPUPS_FN(std::size_t i) {
    list[i] = list_of[i] < lists ? list_of[i] : lists;
    item[i] = static_cast<std::uint32_t>(i);
  });
  if (n > 0) {
    int const bits = static_cast<int>(std::bit_width(p.lists));
    run_in_stream(ex, [&](void* scratch, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(scratch, bytes, list, sorted, item, p.items.data(),
                                             static_cast<std::int32_t>(n), 0, bits, stream);
    });
  }
  each(ex, p.first.size(), [sorted, n, first = p.first] GPUPS_FN(std::size_t l) {
    std::size_t low = 0, high = n;
    while (low < high) {
      std::size_t const middle = low + (high - low) / 2;
      sorted[middle] < l ? low = middle + 1 : high = middle;
    }
    first[l] = static_cast<std::uint32_t>(low);
  });
}
#else
// Counts the items of each piece for each list, and then writes them. Items without a list are written after the
// others, so that no branch depends on them. A thread takes an item of each of kAtOnce pieces by turns: it would wait
// for the place of an item if the item before were of the same list.
inline void write_lists(HostExec ex, PartitionItems const& p) {
  constexpr std::size_t kAtOnce = 4, kPieceMax = 65536;
  std::size_t const n = p.list_of.size(), lists = std::size_t{p.lists} + 1;
  bool const few_lists = lists * 16 < n;
  std::size_t const piece = few_lists ? std::min((n + kAtOnce - 1) / kAtOnce, kPieceMax / kAtOnce) : kPieceMax;
  std::size_t const pieces = (n + piece - 1) / piece, groups = (pieces + kAtOnce - 1) / kAtOnce;
  std::vector<std::uint32_t> place(pieces * lists, 0);  // by piece and list
  auto const each_of = [&](std::size_t group, auto f) {
    std::size_t const first = group * kAtOnce * piece;
    std::uint32_t* const of_group = place.data() + group * kAtOnce * lists;
    for (std::size_t i = first; i < first + piece; ++i) {
      for (std::size_t k = 0; k < kAtOnce; ++k) {
        std::size_t const item = i + k * piece;
        if (item < n) f(of_group[k * lists + std::min(p.list_of[item], p.lists)], item);
      }
    }
  };
  ex.arena->blocks(groups,
                   [&](std::size_t group) { each_of(group, [](std::uint32_t& count, std::size_t) { ++count; }); });
  std::uint32_t at = 0;
  for (std::size_t l = 0; l < lists; ++l) {
    p.first[l] = at;
    for (std::size_t k = l; k < place.size(); k += lists) at += std::exchange(place[k], at);
  }
  ex.arena->blocks(groups, [&](std::size_t group) {
    each_of(group, [&](std::uint32_t& next, std::size_t i) { p.items[next++] = static_cast<std::uint32_t>(i); });
  });
}
#endif

template <Space S>
void run(Exec<S> ex, PartitionItems const& p) {
  GPUPS_ASSERT(p.items.size() >= p.list_of.size() && p.first.size() == std::size_t{p.lists} + 1);
  write_lists(ex, p);
}

GPUPS_KERNEL(partition_items, PartitionItems)

}  // namespace gpups::kernels
