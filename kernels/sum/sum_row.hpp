// SPDX-License-Identifier: Apache-2.0
// Exact sums at the speed of sums of doubles. An accumulator that starts at 1.5 * 2^52 grid steps has the grid as the
// unit of its last place, so a fused multiply-add that rounds down *is* a floor to the grid and an integer addition.
// This holds as long as the exponent of the accumulator stays the same; a change of it, even for a moment, is reported.
// If no sum of this many entries can change the exponent, it is checked once, at the end, which still finds values that
// are not finite.
#pragma once

#include "kernels/base/double_vector.hpp"

#ifdef GPUPS_DOWNWARD
#include <array>
#include <bit>
#include <utility>

#include "kernels/sum/entries_host.hpp"

namespace gpups::kernels {

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
  if (far) return watch ? sum_all_columns<true, true>(s, entries, out) : sum_all_columns<true, false>(s, entries, out);
  return watch ? sum_all_columns<false, true>(s, entries, out) : sum_all_columns<false, false>(s, entries, out);
}

}  // namespace gpups::kernels
#endif
