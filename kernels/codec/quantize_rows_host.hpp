// SPDX-License-Identifier: Apache-2.0
// The most used format, kInt8 rounded to nearest, with vectors: the sums of a row stay in registers between the
// search for its largest magnitude and the encoding. Gives the same bits as Code<Format::kInt8>.
#pragma once

#ifndef __CUDACC__

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/base/highway.hpp"
#include "kernels/codec/code.hpp"
#include "kernels/codec/masked_copy.hpp"

namespace gpups::kernels {

// The longest row that is quantized in this way, which fits in registers of AVX-512.
inline constexpr std::size_t kInt8ColumnsMost = 128;

// Quantizes a row of dim columns, 16 * kGroups or up to 15 fewer, and returns its scale; writes no codes behind the
// last column. `residual` may be null. Columns are handled in groups of 16, the last of which may overlap the one
// before it. The memory `ahead` floats behind the row is prefetched, since it is needed soon: prefetches between the
// loads make this a fifth faster. REQUIRES: dim >= 16.
template <int kGroups>
inline float quantize_int8(float const* values, float* residual, std::uint8_t* codes, std::size_t dim,
                           std::size_t ahead) {
  hn::CappedTag<float, 16> const d;
  hn::RebindToSigned<decltype(d)> const words;
  hn::Rebind<std::int8_t, decltype(d)> const bytes;
  constexpr int kWidth = hn::MaxLanes(d), kVectors = 16 / kWidth * kGroups;
  auto const column = [dim](int v) {
    return v * kWidth < 16 * (kGroups - 1) ? std::size_t{kWidth} * v : dim - std::size_t{kWidth} * (kVectors - v);
  };
  hn::Vec<decltype(d)> sum[kVectors];
  auto most = hn::Zero(words);
#pragma GCC unroll 32
  for (int v = 0; v < kVectors; ++v) {
    std::size_t const j = column(v);
    sum[v] = hn::LoadU(d, values + j);
    if (v * kWidth % 16 == 0) {
      __builtin_prefetch(values + j + ahead);
      if (residual != nullptr) __builtin_prefetch(residual + j + ahead);
    }
    if (residual != nullptr) sum[v] = hn::Add(sum[v], hn::LoadU(d, residual + j));
    most = hn::Max(most, hn::BitCast(words, hn::Abs(sum[v])));
  }
  RowScale const scale = scale_of<Format::kInt8>(static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(words, most))));
  auto const inverse = hn::Set(d, scale.inverse), step = hn::Set(d, scale.scale), least = hn::Set(d, -127);
  bool const leave = residual != nullptr && scale.scale == scale.scale;
#pragma GCC unroll 32
  for (int v = 0; v < kVectors; ++v) {
    std::size_t const j = column(v);
    // NaN becomes -127, as in clamped().
    auto const code = hn::NearestInt(hn::Max(hn::Mul(sum[v], inverse), least));
    hn::StoreU(hn::DemoteTo(bytes, code), bytes, reinterpret_cast<std::int8_t*>(codes + j));
    if (leave) hn::StoreU(hn::NegMulAdd(hn::ConvertTo(d, code), step, sum[v]), d, residual + j);
  }
  return scale.scale;
}

// The same for a row of fewer than 16 columns.
inline float quantize_few_int8(float const* values, float* residual, std::uint8_t* codes, std::size_t dim) {
  float value[16], before[16];
  std::uint8_t code[16];
  masked_load<sizeof value>(values, value, dim * sizeof(float));
  if (residual != nullptr) masked_load<sizeof before>(residual, before, dim * sizeof(float));
  float const scale = quantize_int8<1>(value, residual == nullptr ? nullptr : before, code, 16, 0);
  masked_store<sizeof code>(code, codes, dim);
  if (residual != nullptr) masked_store<sizeof before>(before, residual, dim * sizeof(float));
  return scale;
}

// Quantizes a row, and pads its codes with zeros to whole words. REQUIRES: 0 < dim <= kInt8ColumnsMost.
inline float quantize_int8_row(float const* values, float* residual, std::uint8_t* codes, std::size_t dim,
                               std::size_t ahead) {
  for (std::size_t j = dim; j % 4 != 0; ++j) codes[j] = 0;
  switch (dim < 16 ? 0 : (dim + 15) / 16) {
    case 0:
      return quantize_few_int8(values, residual, codes, dim);
    case 1:
      return quantize_int8<1>(values, residual, codes, dim, ahead);
    case 2:
      return quantize_int8<2>(values, residual, codes, dim, ahead);
    case 3:
      return quantize_int8<3>(values, residual, codes, dim, ahead);
    case 4:
      return quantize_int8<4>(values, residual, codes, dim, ahead);
    case 5:
      return quantize_int8<5>(values, residual, codes, dim, ahead);
    case 6:
      return quantize_int8<6>(values, residual, codes, dim, ahead);
    case 7:
      return quantize_int8<7>(values, residual, codes, dim, ahead);
    default:
      return quantize_int8<8>(values, residual, codes, dim, ahead);
  }
}

}  // namespace gpups::kernels
#endif
