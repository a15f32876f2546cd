// SPDX-License-Identifier: Apache-2.0
// Moves consecutive floats to the marked lanes of vectors, on the host.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include "kernels/base/highway.hpp"
#if HWY_TARGET <= HWY_AVX3
#define GPUPS_EXPAND_LOAD 1
#include <immintrin.h>
#endif

namespace gpups::kernels {

#ifdef GPUPS_EXPAND_LOAD
using ExpandedFloats = hn::CappedTag<float, 16>;
#else
using ExpandedFloats = hn::CappedTag<float, 8>;
#endif
inline constexpr std::size_t kExpandedLanes = hn::MaxLanes(ExpandedFloats());

#ifndef GPUPS_EXPAND_LOAD
// The float that each lane takes, for each pattern of marked lanes.
inline constexpr auto kExpandFrom = [] {
  struct {
    std::uint8_t at[1U << kExpandedLanes][kExpandedLanes];
  } table{};
  for (unsigned bits = 0; bits < (1U << kExpandedLanes); ++bits) {
    std::uint8_t next = 0;
    for (unsigned lane = 0; lane < kExpandedLanes; ++lane) {
      table.at[bits][lane] = next;
      next = static_cast<std::uint8_t>((next + (bits >> lane & 1U)) % kExpandedLanes);
    }
  }
  return table;
}();
#endif

// Calls take(k, x, marked) for k = 0, kExpandedLanes, ... below 64: `marked` is the mask of the lanes that the bits of
// the word from k on mark, and x has the next floats in these lanes, in order. Returns the first float behind them.
// REQUIRES: 64 floats can be read at `from`.
template <class F>
[[gnu::always_inline]] inline float const* expand_word(std::uint64_t word, float const* from, F take) {
  ExpandedFloats const d;
#pragma GCC unroll 16
  for (std::size_t k = 0; k < 64; k += kExpandedLanes) {
    std::uint64_t const bits = word >> k;
    auto const marked = hn::LoadMaskBits(d, reinterpret_cast<std::uint8_t const*>(&bits));
    float const* const next = from + std::popcount(word & ((std::uint64_t{1} << k) - 1));
#ifdef GPUPS_EXPAND_LOAD
    hn::Vec<ExpandedFloats> const x{_mm512_maskz_expandloadu_ps(static_cast<__mmask16>(bits), next)};
#else
    hn::Rebind<std::uint8_t, ExpandedFloats> const bytes;
    auto const lanes = hn::LoadU(bytes, kExpandFrom.at[bits & ((1U << kExpandedLanes) - 1)]);
    auto const places = hn::PromoteTo(hn::RebindToSigned<ExpandedFloats>(), lanes);
    auto const x = hn::TableLookupLanes(hn::LoadU(d, next), hn::IndicesFromVec(d, places));
#endif
    take(k, x, marked);
  }
  return from + std::popcount(word);
}

}  // namespace gpups::kernels
