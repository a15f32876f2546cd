// SPDX-License-Identifier: Apache-2.0
// The exact sum of the gradients of some entries on the host: in vectors of doubles that are rounded downward, where
// that is exact, and in 128 bits otherwise.
#pragma once

#ifndef __CUDACC__

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <utility>

#include "kernels/base/contribution.hpp"
#include "kernels/base/double_vector.hpp"
#include "kernels/sum/sum_gradients.hpp"

namespace gpups::kernels {

// The entries of a row whose gradients the host sums, and their prefetches. The numbers of entries are read in
// sequence, but the source index, the coefficient and the source of an entry are at scattered addresses.

// Entries order[0] .. order[count - 1]. The next `later` entries may be read for prefetches.
struct RowEntries {
  std::uint32_t const* order;
  std::size_t count, later;

  // Returns the entry `ahead` places after number k, or the last one.
  std::uint32_t after(std::size_t k, std::size_t ahead) const { return order[std::min(k + ahead, count + later - 1)]; }
};

inline float const* source_row(SumGradients const& s, std::uint32_t entry) {
  return s.source_rows.row(s.sources.empty() ? entry : s.sources[entry]);
}
inline float coefficient(SumGradients const& s, std::uint32_t entry) {
  return s.coefficients.empty() ? 1.0F : s.coefficients[entry];
}

// The distances, in entries, from a prefetch to its use. Sources are prefetched kNearEntriesAhead entries ahead into
// the first-level cache and, if all sources together have more than kNearBytes, before that kFarEntriesAhead entries
// ahead into the second-level cache. Source indices and coefficients are prefetched kNumbersAhead entries earlier.
inline constexpr std::size_t kNearEntriesAhead = 8, kFarEntriesAhead = 64, kNumbersAhead = 32;
inline constexpr std::size_t kNearBytes = std::size_t{32} << 20;

// Prefetches the source index and the coefficient of an entry. Always inlined, because g++ drops calls of a function
// that only prefetches.
[[gnu::always_inline]] inline void prefetch_entry(SumGradients const& s, std::uint32_t entry) {
  if (!s.sources.empty()) __builtin_prefetch(&s.sources[entry]);
  if (!s.coefficients.empty()) __builtin_prefetch(&s.coefficients[entry]);
}

// Exact sums at the speed of sums of doubles. An accumulator that starts at 1.5 * 2^52 grid steps has the grid as the
// unit of its last place, so a fused multiply-add that rounds down *is* a floor to the grid and an integer addition.
// This holds as long as the exponent of the accumulator stays the same; a change of it, even for a moment, is reported.
// If no sum of this many entries can change the exponent, it is checked once, at the end, which still finds values that
// are not finite.

#ifdef GPUPS_DOWNWARD

inline constexpr std::size_t kVectorLanes = DoubleVector::kLanes;
inline constexpr std::size_t kPassColumns = kVectorLanes * DoubleVector::kRegisters;

// The largest distance of an accumulator from its start, in units of the grid.
inline constexpr double kFastUnits = 0x1p51;

// Returns ldexp(1.0, n) for -1022 <= n <= 1023, without a call.
inline double power_of_two(int n) { return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + n) << 52); }

// Writes the sums of a row as integers, in units of the grid.
struct ToUnits {
  std::int64_t* to;
  template <int kVectors>
  [[gnu::always_inline]] void put(DoubleVector const* sum, DoubleVector base, std::size_t column,
                                  DoubleVector::Mask tail) const {
#pragma GCC unroll 16
    for (int k = 0; k < kVectors; ++k) {
      auto const lanes = k + 1 == kVectors ? tail : DoubleVector::first_lanes(kVectorLanes);
      DoubleVector::store_difference(sum[k], base, to + column + kVectorLanes * k, lanes);
    }
  }
};
// Writes the sums of a row as doubles, which are exact, in whole vectors.
struct ToDoubles {
  double* to;
  template <int kVectors>
  [[gnu::always_inline]] void put(DoubleVector const* sum, DoubleVector base, std::size_t column,
                                  DoubleVector::Mask) const {
#pragma GCC unroll 16
    for (int k = 0; k < kVectors; ++k) DoubleVector::store_difference(sum[k], base, to + column + kVectorLanes * k);
  }
};

// Sums kVectors vectors of columns of a row, of which the last has `tail` lanes. Returns false if an accumulator left
// its range or a value is not finite; the output is then undefined. kFar: also prefetches sources into the second-level
// cache. kWatch: checks accumulators after each addition. Not inlined, because callers may change the rounding mode.
template <int kVectors, bool kFar, bool kWatch, class Out>
[[gnu::noinline]] bool sum_columns(SumGradients const& s, RowEntries const& entries, std::size_t column,
                                   std::size_t tail, Out out) {
  auto const base = DoubleVector::all(0x1.8p52 * power_of_two(s.grid_log2));
  auto const tail_lanes = DoubleVector::first_lanes(tail);
  DoubleVector sum[kVectors];
  DoubleVector::Bits changed[2];
#pragma GCC unroll 16
  for (int k = 0; k < kVectors; ++k) sum[k] = base;

  constexpr std::size_t kAhead = kFar ? kFarEntriesAhead : kNearEntriesAhead;
  for (std::size_t e = 0; e < entries.count; ++e) {
    float const* const row = source_row(s, entries.order[e]) + column;
    float const* const later = source_row(s, entries.after(e, kNearEntriesAhead)) + column;
    float const* const far = kFar ? source_row(s, entries.after(e, kFarEntriesAhead)) + column : nullptr;
    prefetch_entry(s, entries.after(e, kAhead + kNumbersAhead));
    auto const c = DoubleVector::all(static_cast<double>(coefficient(s, entries.order[e])));
#pragma GCC unroll 16
    for (int k = 0; k < kVectors; ++k) {
      float const* const from = row + kVectorLanes * k;
      if (kVectorLanes * k % 16 == 0) {
        __builtin_prefetch(later + kVectorLanes * k);
        if (kFar) __builtin_prefetch(far + kVectorLanes * k, 0, 2);
      }
      sum[k].add_product(c, k + 1 == kVectors ? DoubleVector::load(from, tail_lanes) : DoubleVector::load(from));
      if (kWatch) changed[k % 2].note(sum[k], base);
    }
  }
  if constexpr (!kWatch) {
#pragma GCC unroll 16  // a loop with a variable index would keep all sums in memory
    for (int k = 0; k < kVectors; ++k) changed[k % 2].note(sum[k], base);
  }
  constexpr std::uint64_t kSignAndExponent = 0xFFF0000000000000U;
  if (changed[0].any(kSignAndExponent) || changed[1].any(kSignAndExponent)) return false;
  out.template put<kVectors>(sum, base, column, tail_lanes);
  return true;
}

// Sums all columns of a row. Returns false as sum_columns() does.
template <bool kFar, bool kWatch, class Out>
bool sum_all_columns(SumGradients const& s, RowEntries const& entries, Out out) {
  using Sum = bool (*)(SumGradients const&, RowEntries const&, std::size_t, std::size_t, Out);
  static constexpr auto kSums = []<int... k>(std::integer_sequence<int, k...>) {
    return std::array<Sum, sizeof...(k)>{sum_columns<k + 1, kFar, kWatch, Out>...};
  }
  (std::make_integer_sequence<int, DoubleVector::kRegisters>{});

  [[maybe_unused]] DoubleVector::Downward const rounding;
  std::size_t const dim = s.sums.columns();
  for (std::size_t column = 0; column < dim; column += kPassColumns) {
    std::size_t const columns = std::min(dim - column, kPassColumns);
    std::size_t const vectors = (columns + kVectorLanes - 1) / kVectorLanes;
    std::size_t const tail = columns - (vectors - 1) * kVectorLanes;
    if (!kSums[vectors - 1](s, entries, column, tail, out)) return false;
  }
  return true;
}

// Sums all columns of a row to `out`: ToUnits or ToDoubles. Returns false as sum_columns() does.
template <class Out>
bool sum_row(SumGradients const& s, RowEntries const& entries, Out out) {
  bool const far = s.source_rows.rows() * s.source_rows.stride() * sizeof(float) > kNearBytes;
  bool const watch = !(static_cast<double>(entries.count) * s.contribution_max < kFastUnits);
  if (watch) return sum_all_columns<true, true>(s, entries, out);  // seldom, so not compiled for near sources
  return far ? sum_all_columns<true, false>(s, entries, out) : sum_all_columns<false, false>(s, entries, out);
}

#endif

// Returns the sum of column j in 128 bits, which cannot overflow. The slower method.
inline WideSum wide_sum(SumGradients const& s, double per_grid, RowEntries const& entries, std::size_t j) {
  WideSum sum{0, true};
  for (std::size_t k = 0; k < entries.count; ++k) {
    std::uint32_t const e = entries.order[k];
    sum.add(coefficient(s, e), source_row(s, e)[j], per_grid);
  }
  return sum;
}

// Writes the sums of all columns to `to`, and zeros to the padding. Returns false if a contribution is not valid or a
// sum does not fit int64; all sums are then undefined.
bool sum_any_row(SumGradients const& s, double per_grid, RowEntries const& entries, std::int64_t* to);

}  // namespace gpups::kernels

#endif
