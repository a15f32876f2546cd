// SPDX-License-Identifier: Apache-2.0
// The queries and gradients of a triple whose relation is a matrix R (RESCAL): the score is s R o. As NumberTriple.
// Cost: 5 * dim^2 multiply-adds.
#pragma once

#include <type_traits>

#include "kernels/score/triple_math.hpp"

namespace gpups::kernels {

// out = x R, for a square matrix without gaps between its rows.
template <class Lanes>
GPUPS_FN inline void row_times_matrix(Lanes lanes, float const* x, float const* matrix, std::size_t dim, float* out) {
  if constexpr (std::is_same_v<Lanes, HostLanes>) {  // row by row; `out` is in the first-level cache
    lanes.each(dim, [=](std::size_t j) { out[j] = 0.0F; });
    for (std::size_t i = 0; i < dim; ++i) {
      float const factor = x[i];
      lanes.each(dim, [=, row = matrix + i * dim](std::size_t j) { out[j] += factor * row[j]; });
    }
  } else {
    lanes.each(dim, [=](std::size_t j) {
      float sum = 0.0F;
      for (std::size_t i = 0; i < dim; ++i) sum += x[i] * matrix[i * dim + j];
      out[j] = sum;
    });
  }
}

// out = R x
template <class Lanes>
GPUPS_FN inline void matrix_times_column(Lanes lanes, float const* matrix, float const* x, std::size_t dim,
                                         float* out) {
  for (std::size_t i = 0; i < dim; ++i) {
    float const* const row = matrix + i * dim;
    float const sum = lanes.sum(dim, [=](std::size_t j) { return row[j] * x[j]; });
    if (lanes.first()) out[i] = sum;
  }
}

// See NumberTriple for the functions.
struct MatrixTriple {
  template <class Lanes>
  GPUPS_FN static void write_queries(Lanes lanes, TripleRows const& t) {
    row_times_matrix(lanes, t.subject, t.relation, t.dim, t.object_query);
    matrix_times_column(lanes, t.relation, t.object, t.dim, t.subject_query);
    lanes.each(t.stride - t.dim, [=](std::size_t k) { t.object_query[t.dim + k] = t.subject_query[t.dim + k] = 0.0F; });
  }

  template <class Lanes>
  GPUPS_FN static float finish(Lanes lanes, Regulariser g, float slope, TripleRows const& t) {
    using N = RealNumber<float>;
    std::size_t const dim = t.dim;
    float const *const s = t.subject, *const r = t.relation, *const o = t.object, *const q = t.object_query;
    float *const gs = t.subject_gradient, *const go = t.object_gradient, *const gr = t.relation_gradient;
    // From here on, gs is the gradient of the query for objects, including the part of the positive.
    lanes.each(dim, [=](std::size_t k) { gs[k] += slope * o[k]; });
    bool const regular = g.l2 != 0.0F || g.n3 != 0.0F;
    for (std::size_t i = 0; i < dim; ++i) {
      lanes.each(dim, [=, at = i * dim](std::size_t j) {
        float const d = s[i] * gs[j] + go[i] * o[j];
        gr[at + j] = regular ? d + regulariser_slope(g, r[at + j] * r[at + j]) * r[at + j] : d;
      });
    }
    matrix_times_column(lanes, r, gs, dim, t.scratch);
    lanes.sync();
    row_times_matrix(lanes, go, r, dim, gs);
    lanes.each(dim, [=](std::size_t k) {
      RowGradients<N> d{{t.scratch[k]}, {gs[k] + slope * q[k]}, {0.0F}};
      if (regular) regularise(g, d, N{s[k]}, N{0.0F}, N{o[k]});
      gs[k] = d.subject.re;
      go[k] = d.object.re;
    });
    lanes.each(t.stride - dim, [=](std::size_t k) { gs[dim + k] = go[dim + k] = t.scratch[dim + k] = 0.0F; });
    lanes.each(t.relation_stride - dim * dim, [=](std::size_t k) { gr[dim * dim + k] = 0.0F; });
    if (!regular) return 0.0F;
    auto const penalty = [=](float x) { return regulariser_loss(g, x * x); };
    return lanes.sum(dim, [=](std::size_t k) { return penalty(s[k]) + penalty(o[k]); }) +
           lanes.sum(dim * dim, [=](std::size_t k) { return penalty(r[k]); });
  }
};

}  // namespace gpups::kernels
