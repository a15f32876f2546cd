// SPDX-License-Identifier: Apache-2.0
#include "kernels/transpose.hpp"

#include <algorithm>
#include <bit>

#include "kernels/assert.hpp"
#include "kernels/launch.hpp"
#ifdef __CUDACC__
#include <cub/device/device_radix_sort.cuh>

#include "kernels/device_scratch.hpp"
#endif

namespace gpups::kernels {

inline void check([[maybe_unused]] Transpose const& t) {
  GPUPS_ASSERT(!t.offsets.empty() && t.order.size() >= t.positions.size());
}

#ifdef __CUDACC__
// Sorts entry numbers by row; a row starts where its number could be inserted first.
template <Space S>
void run(Exec<S> ex, Transpose const& t) {
  check(t);
  auto const stream = static_cast<cudaStream_t>(ex.stream);
  std::size_t const n = t.positions.size();
  Device const device = t.offsets.device();
  Array<std::uint32_t> entries(device, n), sorted(device, n);
  std::uint32_t *const entry = entries.data(), *const row = sorted.data();
  Array<std::byte> scratch;
  if (n > 0) {
    each(ex, n, [=] GPUPS_FN(std::size_t i) { entry[i] = static_cast<std::uint32_t>(i); });
    int const bits = std::max(1, static_cast<int>(std::bit_width(t.offsets.size())));
    scratch = run_with_scratch(device, [&](void* memory, std::size_t& bytes) {
      return cub::DeviceRadixSort::SortPairs(memory, bytes, t.positions.data(), row, entry, t.order.data(),
                                             static_cast<std::int64_t>(n), 0, bits, stream);
    });
  }
  each(ex, t.offsets.size(), [=] GPUPS_FN(std::size_t r) {
    std::size_t low = 0, high = n;
    while (low < high) {
      std::size_t const middle = (low + high) / 2;
      row[middle] < r ? low = middle + 1 : high = middle;
    }
    t.offsets[r] = static_cast<std::uint32_t>(low);
  });
  check_cuda(cudaStreamSynchronize(stream), "transposing");
}
#else
// A counting sort. Each share of the entries has counts of its own, so that shares are independent; the result does not
// depend on how many there are.
template <Space S>
void run(Exec<S> ex, Transpose const& t) {
  check(t);
  std::size_t const n = t.positions.size(), rows = t.offsets.size() - 1;
  auto const threads = static_cast<std::size_t>(ex.arena->threads());
  std::size_t const shares = std::clamp<std::size_t>(std::min(n / (rows + 1), n / 16384), 1, threads);
  auto const first = [=](std::size_t share) { return n * share / shares; };
  Array<std::uint32_t> counts(Device::host(), shares * rows);

  ex.arena->blocks(shares, [&](std::size_t share) {
    std::uint32_t* const count = counts.data() + share * rows;
    std::fill_n(count, rows, 0U);
    for (std::size_t i = first(share); i < first(share + 1); ++i) ++count[t.positions[i]];
  });
  std::uint32_t start = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    t.offsets[r] = start;
    for (std::size_t share = 0; share < shares; ++share) {
      std::uint32_t const count = counts[share * rows + r];
      counts[share * rows + r] = start;
      start += count;
    }
  }
  t.offsets[rows] = start;
  ex.arena->blocks(shares, [&](std::size_t share) {
    std::uint32_t* const next = counts.data() + share * rows;
    for (std::size_t i = first(share); i < first(share + 1); ++i) {
      t.order[next[t.positions[i]]++] = static_cast<std::uint32_t>(i);
    }
  });
}
#endif

GPUPS_KERNEL(wait_transpose, Transpose)

}  // namespace gpups::kernels
