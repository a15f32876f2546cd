// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum_gradients.hpp"

#include "kernels/assert.hpp"
#include "kernels/atomic.hpp"
#include "kernels/contribution.hpp"
#include "kernels/launch.hpp"
#include "kernels/sum_rows_host.hpp"

namespace gpups::kernels {

inline void check([[maybe_unused]] SumGradients const& s) {
  GPUPS_ASSERT(s.sources.empty() || s.sources.size() == s.order.size());
  GPUPS_ASSERT(s.coefficients.empty() || s.coefficients.size() == s.order.size());
  GPUPS_ASSERT(s.sums.rows() >= s.offsets.size() - 1 && s.source_rows.columns() >= s.sums.columns());
}

#ifdef __CUDACC__
inline constexpr std::uint32_t kLongRow = 64;  // entries from which a row is a whole block's work

GPUPS_FN inline float const* source_row(SumGradients const& s, std::uint32_t entry) {
  return s.source_rows.row(s.sources.empty() ? entry : s.sources[entry]);
}
GPUPS_FN inline float coefficient(SumGradients const& s, std::uint32_t entry) {
  return s.coefficients.empty() ? 1.0F : s.coefficients[entry];
}

__device__ inline void sum_row_wide(NativeLanes lanes, SumGradients const& s, double per_grid, std::uint32_t r,
                                    std::int64_t* to) {
  lanes.each(s.sums.stride(), [&](std::size_t j) {
    WideSum sum{0, true};
    if (j < s.sums.columns()) sum = wide_sum(s, per_grid, s.offsets[r], s.offsets[r + 1], j);
    to[j] = static_cast<std::int64_t>(sum.units);
    if (!sum.fits()) atomic_min(s.fault.data(), r);
  });
}

// 16 columns of a long row: each team of the block sums its share of the entries, then the shares are added.
__device__ inline void sum_long_row(SumGradients const& s, double per_grid, std::uint32_t r, std::size_t column) {
  __shared__ WideSum share[kCrewThreads];
  std::uint32_t const first = s.offsets[r], last = s.offsets[r + 1];
  if (last - first < kLongRow) return;
  std::size_t const j = column + threadIdx.x % kLanes;
  WideSum sum{0, true};
  if (j < s.sums.columns()) {
    for (std::uint32_t k = first + threadIdx.x / kLanes; k < last; k += kCrewThreads / kLanes) {
      std::uint32_t const e = s.order[k];
      sum.add(coefficient(s, e), source_row(s, e)[j], per_grid);
    }
  }
  share[threadIdx.x] = sum;
  for (unsigned half = kCrewThreads / 2; half >= kLanes; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      share[threadIdx.x].units += share[threadIdx.x + half].units;
      share[threadIdx.x].good = share[threadIdx.x].good && share[threadIdx.x + half].good;
    }
  }
  if (threadIdx.x < kLanes && j < s.sums.stride()) {
    s.sums.row(r)[j] = static_cast<std::int64_t>(share[threadIdx.x].units);
    if (!share[threadIdx.x].fits()) atomic_min(s.fault.data(), r);
  }
  __syncthreads();
}

template <Space S>
void run(Exec<S> ex, SumGradients const& s) {
  if (s.offsets.size() < 2) return;
  check(s);
  std::size_t const rows = s.offsets.size() - 1;
  double const per_grid = std::ldexp(1.0, -s.grid_log2);
  each_row(ex, rows, [s, per_grid] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    auto const r = static_cast<std::uint32_t>(i);
    if (s.offsets[r + 1] - s.offsets[r] < kLongRow) sum_row_wide(lanes, s, per_grid, r, s.sums.row(r));
  });
  std::size_t const chunks = (s.sums.stride() + kLanes - 1) / kLanes;
  each_block(ex, rows * chunks, [s, per_grid, chunks] GPUPS_FN(std::size_t i) {
    sum_long_row(s, per_grid, static_cast<std::uint32_t>(i / chunks), i % chunks * kLanes);
  });
}
#else
template <Space S>
void run(Exec<S> ex, SumGradients const& s) {
  if (s.offsets.size() < 2) return;
  check(s);
  double const per_grid = std::ldexp(1.0, -s.grid_log2);
  auto const take = [&s](std::uint32_t r, bool fits) {
    if (!fits) atomic_min(s.fault.data(), r);
  };
  each_row_to_sum(
      ex, s, [&](std::uint32_t r, Entries entries) { take(r, sum_any_row(s, per_grid, entries, s.sums.row(r))); },
      [&](std::uint32_t r) { take(r, sum_long_row(ex, s, per_grid, r, s.sums.row(r))); });
}
#endif

GPUPS_KERNEL(sum_gradients, SumGradients)

}  // namespace gpups::kernels
