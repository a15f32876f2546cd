// SPDX-License-Identifier: Apache-2.0
// Exact sums as fast as sums of doubles: an accumulator that starts at 1.5 * 2^52 grid steps has the grid as the unit
// of its last place, so a fused multiply-add that rounds down *is* floor to the grid and an integer addition. It stays
// so while the accumulator's exponent does; one that changed, if only for a moment, is reported.
#pragma once

#include "kernels/double_vector.hpp"

#ifdef GPUPS_DOWNWARD
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "kernels/sum_gradients.hpp"

namespace gpups::kernels {

// A row's entries, and where the list of all rows' entries ends: what follows is prefetched.
struct Entries {
  std::uint32_t const *first, *last, *end;
};

inline constexpr int kEntriesAhead = 8;
inline constexpr std::size_t kVectorLanes = DoubleVector::kLanes;
inline constexpr std::size_t kPassColumns = kVectorLanes * DoubleVector::kRegisters;

// Sums kVectors vectors of columns of a row, of which the last has `tail` lanes. False: an accumulator left its range,
// or something was not finite; `to` is then undefined. Not inlined: a caller may have turned the rounding mode.
template <int kVectors>
[[gnu::noinline]] bool sum_columns(SumGradients const& s, Entries entries, std::size_t column, std::size_t tail,
                                   std::int64_t* to) {
  auto const base = DoubleVector::all(0x1.8p52 * std::ldexp(1.0, s.grid_log2));
  auto const all_lanes = DoubleVector::first_lanes(kVectorLanes), tail_lanes = DoubleVector::first_lanes(tail);
  DoubleVector sum[kVectors];
  DoubleVector::Bits changed[2];
  for (auto& x : sum) x = base;

  std::uint32_t const* const sources = s.sources.empty() ? nullptr : s.sources.data();
  float const* const coefficients = s.coefficients.empty() ? nullptr : s.coefficients.data();
  auto const source = [=](std::uint32_t e) { return s.source_rows.row(sources == nullptr ? e : sources[e]) + column; };
  for (std::uint32_t const* entry = entries.first; entry < entries.last; ++entry) {
    if (entry + kEntriesAhead < entries.end) {
      float const* const later = source(entry[kEntriesAhead]);
      for (std::size_t j = 0; j < kVectors * kVectorLanes; j += 16) __builtin_prefetch(later + j);
    }
    float const* const row = source(*entry);
    auto const c = DoubleVector::all(coefficients == nullptr ? 1.0 : static_cast<double>(coefficients[*entry]));
    for (int k = 0; k < kVectors; ++k) {
      sum[k].add_product(c, DoubleVector::load(row + kVectorLanes * k, k + 1 == kVectors ? tail_lanes : all_lanes));
      changed[k % 2].note(sum[k], base);
    }
  }
  constexpr std::uint64_t kSignAndExponent = 0xFFF0000000000000U;
  if (changed[0].any(kSignAndExponent) || changed[1].any(kSignAndExponent)) return false;
  for (int k = 0; k < kVectors; ++k) {
    DoubleVector::store_difference(sum[k], base, to + column + kVectorLanes * k,
                                   k + 1 == kVectors ? tail_lanes : all_lanes);
  }
  return true;
}

// All columns of a row. False: as above.
inline bool sum_row(SumGradients const& s, Entries entries, std::int64_t* to) {
  using Sum = bool (*)(SumGradients const&, Entries, std::size_t, std::size_t, std::int64_t*);
  static constexpr auto kSums = []<int... k>(std::integer_sequence<int, k...>) {
    return std::array<Sum, sizeof...(k)>{sum_columns<k + 1>...};
  }
  (std::make_integer_sequence<int, DoubleVector::kRegisters>{});

  [[maybe_unused]] DoubleVector::Downward const rounding;
  std::size_t const dim = s.sums.columns();
  for (std::size_t column = 0; column < dim; column += kPassColumns) {
    std::size_t const columns = std::min(dim - column, kPassColumns);
    std::size_t const vectors = (columns + kVectorLanes - 1) / kVectorLanes;
    std::size_t const tail = columns - (vectors - 1) * kVectorLanes;
    if (!kSums[vectors - 1](s, entries, column, tail, to)) return false;
  }
  for (std::size_t j = dim; j < s.sums.stride(); ++j) to[j] = 0;
  return true;
}

}  // namespace gpups::kernels
#endif
