// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/repeated_ids.hpp"

#include <bit>
#include <utility>
#include <vector>

#include "kernels/base/atomic.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

#ifdef __CUDACC__
struct NumberedList {
  RepeatedIds r;
  std::uint32_t number;
};

// Adds (number of the list, row) to a hash table. Returns whether the table has had it.
__device__ inline bool add_pair(std::uint64_t* slots, std::uint64_t mask, std::uint64_t pair) {
  constexpr std::uint64_t kFree = ~std::uint64_t{0};  // no list has this number
  for (std::uint64_t at = mix(pair) & mask;; at = (at + 1) & mask) {
    std::uint64_t seen = atomic_load(slots + at);
    if (seen == kFree) seen = atomic_exchange_if(slots + at, kFree, pair);
    if (seen == kFree || seen == pair) return seen == pair;
  }
}

inline void find_repeated(DeviceExec ex, std::span<RepeatedIds const> lists) {
  std::vector<NumberedList> all;
  std::size_t rows = 0;
  for (auto const& list : lists) {
    all.push_back({list, static_cast<std::uint32_t>(all.size())});
    rows += list.ids.size();
  }
  if (rows == 0) return;
  std::size_t const size = std::bit_ceil(2 * rows);
  StreamScratch const scratch(ex, size * sizeof(std::uint64_t));
  auto* const slots = static_cast<std::uint64_t*>(scratch.data());
  std::uint64_t const mask = size - 1;
  check_cuda(cudaMemsetAsync(slots, 0xFF, size * sizeof *slots, static_cast<cudaStream_t>(ex.stream)),
             "clearing a table of rows");
  SegmentList const list(ex, std::move(all), [](NumberedList const& l) { return l.r.ids.size(); });
  each_item(ex, list.segments(), [slots, mask] GPUPS_FN(NumberedList const& l, std::size_t i) {
    std::uint32_t const id = l.r.ids[i];
    if (id == kNoRow) return;
    if (add_pair(slots, mask, std::uint64_t{l.number} << 32 | id)) atomic_min(&l.r.repeated[0], id);
  });
}
#else
inline void find_repeated(HostExec ex, std::span<RepeatedIds const> lists) {
  for (RepeatedIds const& r : lists) {
    each(ex, r.ids.size(), [r](std::size_t i) {
      if (r.ids[i] == kNoRow) return;
      std::uint64_t const before = atomic_exchange(r.mark.row(r.ids[i]), std::uint64_t{r.epoch} << 32);
      if (before >> 32 == r.epoch) atomic_min(&r.repeated[0], r.ids[i]);
    });
  }
}
#endif

struct RepeatedIdsOfAll {
  std::span<RepeatedIds const> lists;
};

template <Space S>
void run(Exec<S> ex, RepeatedIdsOfAll const& all) {
  find_repeated(ex, all.lists);
}

GPUPS_KERNEL(repeated_ids_of_all, RepeatedIdsOfAll)

#ifndef __CUDACC__
void repeated_ids(Stream& stream, std::span<RepeatedIds const> lists) { repeated_ids_of_all(stream, {lists}); }
#endif

}  // namespace gpups::kernels
