// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/check_rows.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/base/max_abs.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/segments.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, CheckValues const& c) {
  each(ex, 1, [bad_row = c.bad_row] GPUPS_FN(std::size_t) { bad_row[0] = kNoRow; });
  each_row(ex, c.rows.rows(), [c] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const most = max_abs(lanes, c.rows.row(i), c.rows.columns());
    if (lanes.first() && !(most <= c.limit)) atomic_min(c.bad_row.data(), static_cast<std::uint32_t>(i));
  });
}

GPUPS_KERNEL(check_values, CheckValues)

#ifndef __CUDACC__
float largest_kept(DataType type) {
  if (type == DataType::kHalf) return std::bit_cast<float>(0x477FEFFFU);  // below 65,520
  if (type == DataType::kBFloat16)
    return std::bit_cast<float>(0x7F7F7FFFU);  // below the middle between the largest finite number and 2^128
  return std::numeric_limits<float>::max();
}
#endif

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

#ifdef __CUDACC__
struct CheckedNumbers {
  RowNumbersPart part;
  std::uint32_t* bad_row;
};

template <Space S>
void run(Exec<S> ex, CheckRowNumbers const& c) {
  if (c.parts.empty()) return;
  check_cuda(cudaMemsetAsync(c.bad_rows.data(), 0xFF, c.bad_rows.bytes(), static_cast<cudaStream_t>(ex.stream)),
             "clearing row numbers");
  std::vector<CheckedNumbers> checked;
  for (auto const& part : c.parts) checked.push_back({part, c.bad_rows.data() + checked.size()});
  SegmentList const list(ex, std::move(checked), [](CheckedNumbers const& n) { return n.part.numbers.size(); });
  each_item(ex, list.segments(), [] GPUPS_FN(CheckedNumbers const& n, std::size_t i) {
    if (n.part.numbers[i] >= n.part.limit) atomic_min(n.bad_row, static_cast<std::uint32_t>(i));
  });
}
#else
// Finds the largest number of each block without branches. Only blocks whose largest number is too large are searched
// number by number.
template <Space S>
void run(Exec<S> ex, CheckRowNumbers const& c) {
  GPUPS_ASSERT(c.bad_rows.size() == c.parts.size());
  for (std::size_t p = 0; p < c.parts.size(); ++p) {
    auto const numbers = c.parts[p].numbers;
    std::size_t const limit = c.parts[p].limit;
    std::uint32_t const* const all = numbers.data();
    std::uint32_t* const bad_row = c.bad_rows.data() + p;
    *bad_row = kNoRow;
    ex.arena->blocks(
        (numbers.size() + kBlockElements - 1) / kBlockElements, [&, n = numbers.size()](std::size_t block) {
          std::size_t const first = block * kBlockElements, last = std::min(first + kBlockElements, n);
          std::uint32_t most = 0;
          for (std::size_t i = first; i < last; ++i) most = std::max(most, all[i]);
          if (first == last || most < limit) return;
          auto const at = std::find_if(all + first, all + last, [&](std::uint32_t number) { return number >= limit; });
          atomic_min(bad_row, static_cast<std::uint32_t>(at - all));
        });
  }
}
#endif

GPUPS_KERNEL(check_row_numbers, CheckRowNumbers)

}  // namespace gpups::kernels
