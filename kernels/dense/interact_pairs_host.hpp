// SPDX-License-Identifier: Apache-2.0
// interact_pairs on the host: the vectors of a sample stay in the first-level cache, and a matrix product computes
// eight rows at a time in vector registers. Only for interact_pairs.cu.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/base/vector.hpp"
#include "kernels/dense/interact_pairs.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

using ShortVector = float __attribute__((vector_size(16)));

// Arguments of a product of two small matrices: out[row] = sum over k of factors[row][k] * terms[k].
struct TileProduct {
  float const* factors;  // (rows, count)
  std::size_t factors_stride;
  float const* terms;  // (count, one vector)
  std::size_t terms_stride;
  std::size_t count;
  float* out;  // (rows, one vector)
  std::size_t out_stride;
};

// Computes kRows rows.
template <class V, std::size_t kRows>
void multiply_tile(TileProduct const& p) {
  V sum[kRows] = {};
  for (std::size_t k = 0; k < p.count; ++k) {
    V const term = load<V>(p.terms + k * p.terms_stride);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r) sum[r] = multiply_add(p.factors[r * p.factors_stride + k], term, sum[r]);
  }
#pragma GCC unroll 8
  for (std::size_t r = 0; r < kRows; ++r) store(p.out + r * p.out_stride, sum[r]);
}

// Computes all rows: kRows at a time, then the remaining ones together.
template <class V, std::size_t kRows = 8>
void multiply_tiles(TileProduct p, std::size_t rows) {
  for (; rows >= kRows; rows -= kRows) {
    multiply_tile<V, kRows>(p);
    p.factors += kRows * p.factors_stride;
    p.out += kRows * p.out_stride;
  }
  if constexpr (kRows > 1) multiply_tiles<V, kRows - 1>(p, rows);
}

// The scratch memory of a thread: a square matrix with an element for each pair, in rows of whole vectors, and the
// transposed vectors of one sample.
struct PairScratch {
  PairScratch(std::size_t slots, std::size_t dim)
      : width((slots + kVector - 1) / kVector * kVector),
        memory(Device::host(), slots * width + width * dim),
        pairs(memory.data()),
        panels(pairs + slots * width) {}

  std::size_t width;  // slots, rounded up to whole vectors
  Array<float> memory;
  float* pairs;   // (slots, width)
  float* panels;  // (width / kVector, dim, kVector): panel[k][l] is element k of vector kVector * panel + l
};

// Fills scratch.panels.
inline void transpose_vectors(float const* vectors, std::size_t slots, std::size_t dim, PairScratch const& scratch) {
  std::size_t const stride = row_stride(dim);
  for (std::size_t first = 0; first < slots; first += kVector) {
    float* const panel = scratch.panels + first * dim;
    std::size_t const count = std::min(kVector, slots - first);
    if (dim < kLanes) {  // a row may end within a vector
      std::fill(panel, panel + dim * kVector, 0.0F);
      for (std::size_t l = 0; l < count; ++l) {
        for (std::size_t k = 0; k < dim; ++k) panel[k * kVector + l] = vectors[(first + l) * stride + k];
      }
      continue;
    }
    for (std::size_t column = 0; column < dim; column += kVector) {
      Vector v[kVector] = {};
      for (std::size_t l = 0; l < count; ++l) v[l] = load<Vector>(vectors + (first + l) * stride + column);
      transpose(v);
      std::size_t const columns = std::min(kVector, dim - column);
      for (std::size_t k = 0; k < columns; ++k) store(panel + (column + k) * kVector, v[k]);
    }
  }
}

// Copies `count` numbers. Copies whole vectors, which overwrites numbers behind them, unless that would exceed `room`.
inline void copy_vectors(float* to, float const* from, std::size_t count, std::size_t room) {
  if ((count + kVector - 1) / kVector * kVector > room) {
    std::memcpy(to, from, count * sizeof(float));
  } else {
    for (std::size_t k = 0; k < count; k += kVector) store(to + k, load<Vector>(from + k));
  }
}

inline void interact_sample(InteractPairsForward const& g, std::size_t i, PairScratch const& scratch) {
  std::size_t const stride = row_stride(g.dim), pairs = g.slots * (g.slots - 1) / 2;
  float const* const vectors = g.rows.row(i);
  transpose_vectors(vectors, g.slots, g.dim, scratch);
  for (std::size_t column = 0; column + 1 < g.slots; column += kVector) {
    std::size_t const row = column + 1;  // the first row that has pairs in these columns
    multiply_tiles<Vector>({.factors = vectors + row * stride,
                            .factors_stride = stride,
                            .terms = scratch.panels + column * g.dim,
                            .terms_stride = kVector,
                            .count = g.dim,
                            .out = scratch.pairs + row * scratch.width + column,
                            .out_stride = scratch.width},
                           g.slots - row);
  }
  float* const out = g.out.row(i);
  std::memcpy(out, vectors, g.dim * sizeof(float));
  std::fill(out + g.dim, out + stride, 0.0F);
  std::size_t at = 0;
  for (std::size_t row = 1; row < g.slots; at += row++) {
    copy_vectors(out + stride + at, scratch.pairs + row * scratch.width, row, pairs - at);
  }
  std::fill(out + stride + pairs, out + g.out.stride(), 0.0F);
}

// Writes the gradients of the pairs to scratch.pairs as a symmetric matrix with zeros on the diagonal.
inline void unpack_pairs(float const* packed, std::size_t slots, PairScratch const& scratch) {
  for (std::size_t row = 0; row < slots; packed += row++) {
    float* const to = scratch.pairs + row * scratch.width;
    for (std::size_t column = 0; column < row; ++column) {
      to[column] = packed[column];
      scratch.pairs[column * scratch.width + row] = packed[column];
    }
    to[row] = 0.0F;
  }
}

inline void interact_sample(InteractPairsBackward const& g, std::size_t i, PairScratch const& scratch) {
  std::size_t const stride = row_stride(g.dim);
  float const* const gradient = g.out_gradient.row(i);
  float* const out = g.rows_gradient.row(i);
  unpack_pairs(gradient + stride, g.slots, scratch);
  auto const multiply_columns = [&]<class V>(V) {
    for (std::size_t column = 0; column < stride; column += sizeof(V) / sizeof(float)) {
      multiply_tiles<V>({.factors = scratch.pairs,
                         .factors_stride = scratch.width,
                         .terms = g.rows.row(i) + column,
                         .terms_stride = stride,
                         .count = g.slots,
                         .out = out + column,
                         .out_stride = stride},
                        g.slots);
    }
  };
  stride % kVector == 0 ? multiply_columns(Vector{}) : multiply_columns(ShortVector{});
  for (std::size_t k = 0; k < g.dim; ++k) out[k] += gradient[k];
  for (std::size_t f = 0; g.dim < stride && f < g.slots; ++f) {
    std::fill(out + f * stride + g.dim, out + (f + 1) * stride, 0.0F);
  }
}

template <class Interact>
void interact(HostExec ex, Interact const& g) {
  std::size_t const m = g.rows.rows();
  ex.arena->blocks((m + kBlockRows - 1) / kBlockRows, [&](std::size_t block) {
    PairScratch const scratch(g.slots, g.dim);
    std::size_t const last = std::min(m, (block + 1) * kBlockRows);
    for (std::size_t i = block * kBlockRows; i < last; ++i) interact_sample(g, i, scratch);
  });
}

}  // namespace gpups::kernels
