// SPDX-License-Identifier: Apache-2.0
// The exact sums of sum_gradients_avx512.hpp for machines without its instructions: the thread's rounding mode is
// turned downward for the time of a row.
#pragma once

#if defined(__FMA__) && !defined(GPUPS_FAST_SUMS)
#define GPUPS_FAST_SUMS 1
#include <bit>
#include <cfenv>
#include <cmath>

#include "kernels/sum_gradients.hpp"

namespace gpups::kernels {

struct Entries {
  std::uint32_t const *first, *last, *end;
};

inline constexpr std::size_t kColumns = 32;  // in registers at a time

// Sums `columns` <= kColumns columns. REQUIRES: rounding is downward. Not inline, so that no arithmetic of this
// function is moved to where it is not.
[[gnu::noinline]] static bool sum_columns(SumGradients const& s, Entries entries, std::size_t column,
                                          std::size_t columns, double base, std::int64_t* to) {
  auto const base_bits = std::bit_cast<std::uint64_t>(base);
  double sum[kColumns];
  std::uint64_t changed[kColumns] = {};
  for (double& x : sum) x = base;
  for (std::uint32_t const* entry = entries.first; entry < entries.last; ++entry) {
    std::uint32_t const e = *entry;
    float const* const row = s.source_rows.row(s.sources.empty() ? e : s.sources[e]) + column;
    double const c = s.coefficients.empty() ? 1.0 : static_cast<double>(s.coefficients[e]);
    auto const add = [&](std::size_t j) {
      sum[j] = __builtin_fma(c, static_cast<double>(row[j]), sum[j]);
      changed[j] |= std::bit_cast<std::uint64_t>(sum[j]) ^ base_bits;
    };
    if (columns == kColumns) {
      for (std::size_t j = 0; j < kColumns; ++j) add(j);
    } else {
      for (std::size_t j = 0; j < columns; ++j) add(j);
    }
  }
  std::uint64_t any = 0;
  for (std::size_t j = 0; j < columns; ++j) {
    any |= changed[j];
    to[column + j] = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(sum[j]) - base_bits);
  }
  return any >> 52 == 0;  // sign and exponent
}

// All columns of a row. False: an accumulator left its range, or something was not finite; `to` is then undefined.
inline bool sum_row(SumGradients const& s, Entries entries, std::int64_t* to) {
  double const base = 0x1.8p52 * std::ldexp(1.0, s.grid_log2);
  std::size_t const dim = s.sums.columns();
  int const before = std::fegetround();
  std::fesetround(FE_DOWNWARD);
  bool good = true;
  for (std::size_t column = 0; column < dim && good; column += kColumns) {
    good = sum_columns(s, entries, column, dim - column < kColumns ? dim - column : kColumns, base, to);
  }
  std::fesetround(before);
  for (std::size_t j = dim; j < s.sums.stride(); ++j) to[j] = 0;
  return good;
}

}  // namespace gpups::kernels
#endif
