// SPDX-License-Identifier: Apache-2.0
#include "kernels/codec/top_k_rows.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/codec/code.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// The threshold of a row: at least k elements reach the magnitude with these bits; of the elements equal to it, `equal`
// are selected.
struct RowBound {
  std::uint32_t bits;
  std::size_t equal;
};

// The magnitudes of a row, which are counted many times.
#ifdef __CUDACC__
// Each lane keeps its first columns in registers.
struct RowMagnitudes {
  static constexpr std::size_t kHeld = 4;
  float const* x;
  std::size_t dim;
  NativeLanes lanes;
  std::uint32_t held[kHeld];

  __device__ RowMagnitudes(float const* row, std::size_t columns, NativeLanes of) : x(row), dim(columns), lanes(of) {
    for (std::size_t k = 0; k < kHeld; ++k) {
      std::size_t const j = k * kLanes + lanes.lane;
      held[k] = j < dim ? magnitude_bits(x[j]) : 0;
    }
  }
  // Returns how many magnitudes have bits >= least. REQUIRES: least > 0.
  __device__ std::size_t count_from(std::uint32_t least) const {
    std::uint64_t own = 0;
    for (std::size_t k = 0; k < kHeld; ++k) own += held[k] >= least ? 1 : 0;
    for (std::size_t j = kHeld * kLanes + lanes.lane; j < dim; j += kLanes)
      own += magnitude_bits(x[j]) >= least ? 1 : 0;
    return lanes.sum_words(kLanes, [own](std::size_t) { return own; });
  }
};
#else
struct RowMagnitudes {
  float const* x;
  std::size_t dim;
  NativeLanes lanes;

  // Returns how many magnitudes have bits >= least.
  std::size_t count_from(std::uint32_t least) const {
    return lanes.sum_words(
        dim, [row = x, least](std::size_t j) { return magnitude_bits(row[j]) >= least ? std::uint64_t{1} : 0; });
  }
};
#endif

// Finds the bound by bisection of the bits. REQUIRES: 0 < k <= dim.
GPUPS_FN inline RowBound find_bound(RowMagnitudes const& row, std::size_t k, float guess) {
  constexpr std::uint32_t kNear = 1U << 20;  // about an eighth
  std::uint32_t low = 0, end = 0x80000000;   // k elements reach `low`, fewer reach `end`
  std::uint32_t const near = magnitude_bits(guess);
  if (near > kNear && near < kFloatInfinity) {
    if (row.count_from(near - kNear) >= k) low = near - kNear;
    if (row.count_from(near + kNear) < k) end = near + kNear;
  }
  while (end - low > 1) {
    std::uint32_t const middle = low + (end - low) / 2;
    std::size_t const count = row.count_from(middle);
    if (count == k) return {middle, k};
    (count > k ? low : end) = middle;
  }
  return {low, k - row.count_from(low + 1)};
}

// Calls keep(j, rank) for the selected columns, in order.
#ifdef __CUDACC__
template <class Keep>
__device__ void each_kept(float const* x, std::size_t dim, RowBound bound, NativeLanes lanes, Keep keep) {
  unsigned const shift = __ffs(static_cast<int>(lanes.mask)) - 1, before = (1U << lanes.lane) - 1;
  std::size_t rank = 0, equal = 0;
  for (std::size_t first = 0; first < dim; first += kLanes) {
    std::size_t const j = first + lanes.lane;
    std::uint32_t const bits = j < dim ? magnitude_bits(x[j]) : 0;
    unsigned const same = __ballot_sync(lanes.mask, j < dim && bits == bound.bits) >> shift & 0xFFFFU;
    bool const ties = j < dim && bits == bound.bits && equal + __popc(same & before) < bound.equal;
    bool const kept = ties || bits > bound.bits;
    unsigned const all = __ballot_sync(lanes.mask, kept) >> shift & 0xFFFFU;
    if (kept) keep(j, rank + __popc(all & before));
    rank += __popc(all);
    equal += __popc(same);
  }
}
#else
template <class Keep>
void each_kept(float const* x, std::size_t dim, RowBound bound, NativeLanes, Keep keep) {
  std::size_t rank = 0;
  for (std::size_t j = 0; j < dim; ++j) {
    std::uint32_t const bits = magnitude_bits(x[j]);
    if (bits < bound.bits) continue;
    if (bits == bound.bits && bound.equal == 0) continue;
    bound.equal -= bits == bound.bits ? 1 : 0;
    keep(j, rank++);
  }
}
#endif

template <Space S>
void run(Exec<S> ex, TopKRows const& t) {
  std::size_t const dim = t.values.columns(), k = t.k < dim ? t.k : dim;
  GPUPS_ASSERT(t.k > 0 && t.columns.size() >= t.values.rows() * k && t.kept.size() >= t.values.rows() * k);
  GPUPS_ASSERT(t.residual.rows() == 0 || t.residual.rows() >= t.values.rows());
  GPUPS_ASSERT(t.thresholds.empty() || t.thresholds.size() >= t.values.rows());
  if (dim == 0) return;
  each_row(ex, t.values.rows(), [t, dim, k] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const* x = t.values.row(i);
    float* const residual = t.residual.rows() == 0 ? nullptr : t.residual.row(i);
    if (residual != nullptr) {
      float const* const from = x;
      lanes.each(dim, [=](std::size_t j) { residual[j] += from[j]; });
      x = residual;
    }
    RowBound const bound = find_bound(RowMagnitudes{x, dim, lanes}, k, t.thresholds.empty() ? 0.0F : t.thresholds[i]);
    each_kept(x, dim, bound, lanes, [&](std::size_t j, std::size_t rank) {
      t.columns[i * k + rank] = static_cast<std::uint32_t>(j);
      t.kept[i * k + rank] = x[j];
      if (residual != nullptr) residual[j] = 0;
    });
    if (!t.thresholds.empty() && lanes.first()) t.thresholds[i] = std::bit_cast<float>(bound.bits);
  });
}

GPUPS_KERNEL(top_k_rows, TopKRows)

#ifdef __CUDACC__
GPUPS_FN inline std::size_t bits_set(std::uint32_t word) { return static_cast<std::size_t>(__popc(word)); }
#else
inline std::size_t bits_set(std::uint32_t word) { return static_cast<std::size_t>(__builtin_popcount(word)); }
#endif

template <Space S>
void run(Exec<S> ex, UnitsToFloats const& t) {
  GPUPS_ASSERT(t.to.rows() >= t.from.rows() && t.to.columns() == t.from.columns());
  each_row(ex, t.from.rows(), [t] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::int64_t const* const from = t.from.row(i);
    float* const to = t.to.row(i);
    lanes.each(t.from.columns(), [=](std::size_t j) { to[j] = static_cast<float>(from[j]); });
  });
}

template <Space S>
void run(Exec<S> ex, ExtractColumns const& t) {
  std::size_t const n = t.rows.rows(), words = bitmap_words(t.rows.columns());
  GPUPS_ASSERT(t.columns.size() >= n * t.k && t.kept.rows() >= n && t.kept.columns() == t.k);
  GPUPS_ASSERT(t.bitmaps.size() >= n * words);
  each_row(ex, n, [t, words] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::uint32_t const* const columns = t.columns.data() + i * t.k;
    std::int64_t* const row = t.rows.row(i);
    std::int64_t* const kept = t.kept.row(i);
    std::uint32_t* const bitmap = t.bitmaps.data() + i * words;
    lanes.each(words, [=](std::size_t w) { bitmap[w] = 0; });
    lanes.each(t.k, [=](std::size_t r) {
      kept[r] = row[columns[r]];
      row[columns[r]] = 0;
    });
    // There are few columns, so one lane does it.
    if (!lanes.first()) return;
    for (std::size_t r = 0; r < t.k; ++r) bitmap[columns[r] / 32] |= 1U << (columns[r] % 32);
  });
}

template <Space S>
void run(Exec<S> ex, AddColumns const& a) {
  std::size_t const n = a.kept.rows(), words = bitmap_words(a.rows.columns());
  GPUPS_ASSERT(a.bitmaps.size() >= n * words && (a.slots.empty() ? a.rows.rows() >= n : a.slots.size() >= n));
  each_row(ex, n, [a, words] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::uint32_t const* const bitmap = a.bitmaps.data() + i * words;
    std::int64_t const* const kept = a.kept.row(i);
    std::int64_t* const row = a.rows.row(a.slots.empty() ? i : a.slots[i]);
    lanes.each(a.rows.columns(), [=](std::size_t j) {
      std::uint32_t const word = bitmap[j / 32], below = word & ((1U << (j % 32)) - 1);
      if ((word >> (j % 32) & 1U) == 0) return;
      std::size_t rank = bits_set(below);
      for (std::size_t w = 0; w < j / 32; ++w) rank += bits_set(bitmap[w]);
      if (rank >= a.kept.columns()) return;
      auto const sum = static_cast<std::uint64_t>(row[j]) + static_cast<std::uint64_t>(kept[rank]);
      row[j] = static_cast<std::int64_t>(sum);
    });
  });
}

GPUPS_KERNEL(units_to_floats, UnitsToFloats)
GPUPS_KERNEL(extract_columns, ExtractColumns)
GPUPS_KERNEL(add_columns, AddColumns)

}  // namespace gpups::kernels
