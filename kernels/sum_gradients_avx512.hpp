// SPDX-License-Identifier: Apache-2.0
// Exact sums as fast as sums of doubles: an accumulator that starts at 1.5 * 2^52 grid steps has the grid as the unit
// of its last place, so a fused multiply-add that rounds down *is* floor to the grid and an integer addition. It stays
// so while the accumulator's exponent does; one that changed, if only for a moment, is reported.
#pragma once

#if defined(__AVX512F__) && defined(__AVX512VL__)
#define GPUPS_FAST_SUMS 1
#include <immintrin.h>

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

inline constexpr int kVectorsMax = 16;  // of 8 columns, in registers at a time
inline constexpr int kEntriesAhead = 8;

// Sums 8 * kVectors columns of a row, of which the last vector has only those in `tail`. False: an accumulator left its
// range, or something was not finite; `to` is then undefined.
template <int kVectors>
bool sum_columns(SumGradients const& s, Entries entries, std::size_t column, unsigned tail, std::int64_t* to) {
  double const base = 0x1.8p52 * std::ldexp(1.0, s.grid_log2);
  __m512i const base_bits = _mm512_set1_epi64(std::bit_cast<long long>(base));
  __m512d sum[kVectors];
  __m512i changed[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()};
  for (auto& x : sum) x = _mm512_set1_pd(base);

  std::uint32_t const* const sources = s.sources.empty() ? nullptr : s.sources.data();
  float const* const coefficients = s.coefficients.empty() ? nullptr : s.coefficients.data();
  auto const source = [=](std::uint32_t e) { return s.source_rows.row(sources == nullptr ? e : sources[e]) + column; };
  auto const mask = [=](int k) { return static_cast<__mmask8>(k + 1 == kVectors ? tail : 0xFF); };
  for (std::uint32_t const* entry = entries.first; entry < entries.last; ++entry) {
    if (entry + kEntriesAhead < entries.end) {
      float const* const later = source(entry[kEntriesAhead]);
      for (int k = 0; k < kVectors; k += 2) __builtin_prefetch(later + 8 * k);
    }
    float const* const row = source(*entry);
    __m512d const c = _mm512_set1_pd(coefficients == nullptr ? 1.0 : static_cast<double>(coefficients[*entry]));
    for (int k = 0; k < kVectors; ++k) {
      __m512d const x = _mm512_maskz_cvtps_pd(0xFF, _mm256_maskz_loadu_ps(mask(k), row + 8 * k));
      sum[k] = _mm512_fmadd_round_pd(c, x, sum[k], _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
      changed[k % 2] = _mm512_ternarylogic_epi64(changed[k % 2], _mm512_castpd_si512(sum[k]), base_bits,
                                                 0xF6);  // changed |= sum ^ base
    }
  }
  __m512i const sign_and_exponent = _mm512_set1_epi64(static_cast<long long>(0xFFF0000000000000U));
  if (_mm512_test_epi64_mask(_mm512_or_si512(changed[0], changed[1]), sign_and_exponent) != 0) return false;
  for (int k = 0; k < kVectors; ++k) {
    _mm512_mask_storeu_epi64(to + column + 8 * k, mask(k), _mm512_sub_epi64(_mm512_castpd_si512(sum[k]), base_bits));
  }
  return true;
}

// All columns of a row. False: as above.
inline bool sum_row(SumGradients const& s, Entries entries, std::int64_t* to) {
  using Sum = bool (*)(SumGradients const&, Entries, std::size_t, unsigned, std::int64_t*);
  static constexpr auto kSums = []<int... k>(std::integer_sequence<int, k...>) {
    return std::array<Sum, sizeof...(k)>{sum_columns<k + 1>...};
  }
  (std::make_integer_sequence<int, kVectorsMax>{});

  std::size_t const dim = s.sums.columns();
  for (std::size_t column = 0; column < dim; column += 8 * kVectorsMax) {
    std::size_t const left = std::min<std::size_t>(dim - column, 8 * kVectorsMax);
    std::size_t const vectors = (left + 7) / 8;
    unsigned const tail = 0xFFU >> (8 * vectors - left);
    if (!kSums[vectors - 1](s, entries, column, tail, to)) return false;
  }
  for (std::size_t j = dim; j < s.sums.stride(); ++j) to[j] = 0;
  return true;
}

}  // namespace gpups::kernels
#endif
