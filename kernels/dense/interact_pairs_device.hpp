// SPDX-License-Identifier: Apache-2.0
// interact_pairs on a GPU: a block for each sample, whose vectors are read many times, from shared memory. Only for
// interact_pairs.cu. REQUIRES: rows begin at multiples of 16 bytes.
#pragma once

#include <cmath>

#include "kernels/base/store_wide.hpp"
#include "kernels/dense/interact_pairs.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// Returns the index of pair (row, column), column < row, among the pairs of a sample.
__device__ inline std::size_t place_of_pair(std::size_t row, std::size_t column) {
  return row * (row - 1) / 2 + column;
}
// Returns the row of the pair with this index.
__device__ inline std::size_t row_of_pair(std::size_t place) {
  auto row = static_cast<std::size_t>((1 + sqrtf(1 + 8 * static_cast<float>(place))) / 2);
  while (row * (row - 1) / 2 > place) --row;
  while (row * (row + 1) / 2 <= place) ++row;
  return row;
}

// The vectors of a sample and, for the backward pass, the gradients of its pairs: in shared memory or, if they are too
// large for it, where they are.
struct Sample {
  float const* vectors;
  std::size_t stride;  // between vectors, a multiple of four floats
  float const* pairs;
  __device__ float const* vector(std::size_t i) const { return vectors + i * stride; }
};

// The most floats that a block keeps in shared memory, and its threads.
inline constexpr std::size_t kSampleFloats = 8192;
inline constexpr unsigned kSampleThreads = 256;

// Copies a sample to shared memory. 16 bytes between vectors shift each one relative to the memory banks. All threads
// of the block call it.
__device__ inline Sample stage_sample(float const* vectors, std::size_t slots, std::size_t dim, float const* pairs,
                                      std::size_t pair_count) {
  alignas(16) __shared__ float stage[kSampleFloats];
  std::size_t const stride = row_stride(dim), staged = stride + 4, words = stride / 4;
  if (slots * staged + pair_count > kSampleFloats) return {vectors, stride, pairs};
  __syncthreads();  // all threads have read the sample before
  auto const* const from = reinterpret_cast<float4 const*>(vectors);
  for (std::size_t w = threadIdx.x; w < slots * words; w += kSampleThreads) {
    *reinterpret_cast<float4*>(stage + w / words * staged + w % words * 4) = from[w];
  }
  for (std::size_t p = threadIdx.x; p < pair_count; p += kSampleThreads) stage[slots * staged + p] = pairs[p];
  __syncthreads();
  return {stage, staged, stage + slots * staged};
}

__device__ inline float dot_of(float const* left, float const* right, std::size_t dim) {
  float sum = 0;
  std::size_t d = 0;
  for (; d + 4 <= dim; d += 4) {
    float4 const l = *reinterpret_cast<float4 const*>(left + d), r = *reinterpret_cast<float4 const*>(right + d);
    sum = fmaf(l.x, r.x, sum);
    sum = fmaf(l.y, r.y, sum);
    sum = fmaf(l.z, r.z, sum);
    sum = fmaf(l.w, r.w, sum);
  }
  for (; d < dim; ++d) sum = fmaf(left[d], right[d], sum);
  return sum;
}

inline void interact(DeviceExec ex, InteractPairsForward const& g) {
  each_block<kSampleThreads>(ex, g.rows.rows(), [g] GPUPS_FN(std::size_t i) {
    std::size_t const stride = row_stride(g.dim), columns = interact_pairs_columns(g.slots, g.dim);
    Sample const sample = stage_sample(g.rows.row(i), g.slots, g.dim, nullptr, 0);
    float* const out = g.out.row(i);
    for (std::size_t k = threadIdx.x; k < g.out.stride(); k += kSampleThreads) {
      float value = 0;
      if (k < g.dim) {
        value = sample.vector(0)[k];
      } else if (k >= stride && k < columns) {
        std::size_t const row = row_of_pair(k - stride);
        value = dot_of(sample.vector(row), sample.vector(k - stride - place_of_pair(row, 0)), g.dim);
      }
      out[k] = value;
    }
  });
}

// Writes four columns, from k on, of the gradient of vector f.
__device__ inline void write_gradient(InteractPairsBackward const& g, std::size_t i, Sample const& sample,
                                      std::size_t f, std::size_t k) {
  float sum[4] = {};
  for (std::size_t c = 0; c < 4; ++c) sum[c] = f == 0 && k + c < g.dim ? g.out_gradient.row(i)[k + c] : 0;
  for (std::size_t other = 0; other < g.slots; ++other) {
    if (other == f) continue;
    float const of_pair = sample.pairs[f > other ? place_of_pair(f, other) : place_of_pair(other, f)];
    float4 const four = *reinterpret_cast<float4 const*>(sample.vector(other) + k);
    sum[0] = fmaf(of_pair, four.x, sum[0]);
    sum[1] = fmaf(of_pair, four.y, sum[1]);
    sum[2] = fmaf(of_pair, four.z, sum[2]);
    sum[3] = fmaf(of_pair, four.w, sum[3]);
  }
  for (std::size_t c = 0; c < 4; ++c) sum[c] = k + c < g.dim ? sum[c] : 0;
  store_wide(g.rows_gradient.row(i) + f * row_stride(g.dim) + k, make_float4(sum[0], sum[1], sum[2], sum[3]));
}

inline void interact(DeviceExec ex, InteractPairsBackward const& g) {
  each_block<kSampleThreads>(ex, g.rows.rows(), [g] GPUPS_FN(std::size_t i) {
    std::size_t const words = row_stride(g.dim) / 4, pairs = place_of_pair(g.slots, 0);
    Sample const sample = stage_sample(g.rows.row(i), g.slots, g.dim, g.out_gradient.row(i) + row_stride(g.dim), pairs);
    for (std::size_t w = threadIdx.x; w < g.slots * words; w += kSampleThreads) {
      write_gradient(g, i, sample, w / words, w % words * 4);
    }
  });
}

}  // namespace gpups::kernels
