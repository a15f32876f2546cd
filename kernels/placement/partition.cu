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
// Counts the items of each block for each list, and then writes them.
inline void write_lists(HostExec ex, PartitionItems const& p) {
  constexpr std::size_t kBlock = 65536;
  std::size_t const n = p.list_of.size(), blocks = (n + kBlock - 1) / kBlock, lists = p.lists;
  std::vector<std::uint32_t> place(blocks * lists, 0);  // by block and list
  auto const each_of = [&](std::size_t block, auto f) {
    for (std::size_t i = block * kBlock; i < std::min(n, (block + 1) * kBlock); ++i) {
      if (p.list_of[i] != kNoList) f(place[block * lists + p.list_of[i]], i);
    }
  };
  ex.arena->blocks(blocks,
                   [&](std::size_t block) { each_of(block, [](std::uint32_t& count, std::size_t) { ++count; }); });
  std::uint32_t at = 0;
  for (std::size_t l = 0; l < lists; ++l) {
    p.first[l] = at;
    for (std::size_t block = 0; block < blocks; ++block) at += std::exchange(place[block * lists + l], at);
  }
  p.first[lists] = at;
  ex.arena->blocks(blocks, [&](std::size_t block) {
    each_of(block, [&](std::uint32_t& next, std::size_t i) { p.items[next++] = static_cast<std::uint32_t>(i); });
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
