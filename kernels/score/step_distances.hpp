// SPDX-License-Identifier: Apache-2.0
// step_triples for distances. Only for step_triples.cu.
//
// Entry e has source e. The source of a negative is the derivative of its score by its row, and its coefficient is the
// derivative of the loss by the score. The sources of subject and object are complete gradients.
#pragma once

#include <algorithm>

#include "kernels/score/distance_triple.hpp"
#include "kernels/score/each_triple.hpp"
#include "kernels/score/step_triples.hpp"
#include "kernels/score/triple_math.hpp"

namespace gpups::kernels {

// Returns the rows of triple i, except its queries.
GPUPS_FN inline TripleRows distance_rows_of(StepTriples const& g, std::size_t i) {
  std::size_t const entries = 2 + 2 * g.negatives;
  std::uint32_t const* const rows = g.entity_rows.data() + i * entries;
  return {.subject = g.entities.row(rows[0]),
          .relation = g.relations.row(g.relation_rows[i]),
          .object = g.entities.row(rows[1]),
          .object_query = nullptr,
          .subject_query = nullptr,
          .subject_gradient = g.sources.row(i * entries),
          .object_gradient = g.sources.row(i * entries + 1),
          .relation_gradient = g.relation_sources.row(i),
          .scratch = nullptr,
          .dim = g.entities.columns(),
          .stride = g.entities.stride(),
          .relation_stride = row_stride(g.relation_sources.columns())};
}

// Returns number k of the gradients of both queries, without the part of the positive. slopes: the derivatives of the
// loss by the scores of the negatives; sources: those of the negatives.
template <class N>
GPUPS_FN inline QueryPair<N> sum_of_negatives(float const* slopes, float const* sources, std::size_t stride,
                                              std::size_t negatives, std::size_t k, std::size_t count) {
  QueryPair<N> sum = {};
  for (std::size_t j = 0; j < negatives; ++j) {
    sum.object = plus(sum.object, -slopes[j], N::at(sources + j * stride, k, count));
    sum.subject = plus(sum.subject, -slopes[negatives + j], N::at(sources + (negatives + j) * stride, k, count));
  }
  return sum;
}

template <class Score, Space S>
void step_distances_of(Exec<S> ex, StepTriples const& g) {
  each_row(ex, g.relation_rows.size(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    using Triple = DistanceTriple<Score, float>;
    std::size_t const n = g.negatives, stride = g.entities.stride(), dim = g.entities.columns();
    std::uint32_t const* const rows = g.entity_rows.data() + i * (2 + 2 * n);
    float* const coefficients = g.coefficients.data() + i * (2 + 2 * n);
    float* const sources = g.sources.row(i * (2 + 2 * n) + 2);  // of the negatives
    TripleRows t = distance_rows_of(g, i);
    t.object_query = t.subject_gradient;  // until finish() writes the gradients
    t.subject_query = t.object_gradient;

    Triple::write_queries(lanes, t);
    lanes.sync();
    float const positive = g.margin - Triple::distance(lanes, t.object_query, t.object, dim);
    for (std::size_t j = 0; j < 2 * n; ++j) {
      float const* const query = j < n ? t.object_query : t.subject_query;
      float const distance = Triple::distance(lanes, query, g.entities.row(rows[2 + j]), dim, sources + j * stride);
      if (lanes.first()) coefficients[2 + j] = g.margin - distance;
    }
    if (lanes.first()) coefficients[0] = coefficients[1] = 1.0F;
    lanes.sync();
    SideLoss const at = triple_loss(lanes, g.loss, positive, coefficients + 2, coefficients + 2 + n, n, rows + 2,
                                    rows + 2 + n, rows[1], rows[0]);
    lanes.sync();
    float const regular = Triple::finish(lanes, g.regulariser, at.slope, t, [=](std::size_t k) {
      return sum_of_negatives<typename Triple::N>(coefficients + 2, sources, stride, n, k, Triple::N::count(dim));
    });
    if (lanes.first()) g.losses[i] = loss_units(at.loss) + loss_units(regular);
    note_largest_source(lanes, g, i);
  });
}

#ifndef __CUDACC__

// The same on the host, with vectors and prefetch.
template <class Score>
class HostDistanceStep {
 public:
  explicit HostDistanceStep(StepTriples const& g)
      : g_(g),
        n_(g.negatives),
        stride_(g.entities.stride()),
        padded_(whole_lanes(1 + 2 * n_)),
        scratch_(Device::host(), padded_ + 2 * stride_) {}

  // Always inlined, since g++ removes calls of a function that only prefetches.
  [[gnu::always_inline]] void prefetch(std::size_t i) const {
    std::uint32_t const* const rows = g_.entity_rows.data() + i * (2 + 2 * n_);
    std::size_t const bytes = stride_ * sizeof(float);
    HostLanes{}.prefetch(g_.relations.row(g_.relation_rows[i]), row_stride(g_.relations.columns()) * sizeof(float));
    for (std::size_t e = 0; e < 2 + 2 * n_; ++e) HostLanes{}.prefetch(g_.entities.row(rows[e]), bytes);
    float* const sources = g_.sources.row(i * (2 + 2 * n_));
    for (std::size_t k = 0; k < (2 + 2 * n_) * stride_; k += kLanes) __builtin_prefetch(sources + k, 1);
  }

  void operator()(std::size_t i) const {
    using Triple = DistanceTriple<Score, Vector>;
    std::uint32_t const* const rows = g_.entity_rows.data() + i * (2 + 2 * n_);
    float* const coefficients = g_.coefficients.data() + i * (2 + 2 * n_);
    float* const sources = g_.sources.row(i * (2 + 2 * n_) + 2);
    float* const scores = scratch_.data();  // of the object, the negatives for it, and the negatives for the subject
    std::size_t const dim = g_.entities.columns();
    TripleRows t = distance_rows_of(g_, i);
    t.object_query = scores + padded_;
    t.subject_query = t.object_query + stride_;

    Triple::write_queries(HostLanes{}, t);
    scores[0] = g_.margin - Triple::distance(HostLanes{}, t.object_query, t.object, dim);
    for (std::size_t j = 0; j < 2 * n_; ++j) {
      float const* const query = j < n_ ? t.object_query : t.subject_query;
      float const* const row = g_.entities.row(rows[2 + j]);
      scores[1 + j] = g_.margin - Triple::distance(HostLanes{}, query, row, dim, sources + j * stride_);
    }
    std::fill(scores + 1 + 2 * n_, scores + padded_, 0.0F);
    SideLoss const at = g_.loss.kind == Loss::Kind::kLogistic
                            ? logistic_loss(scores, 1 + 2 * n_)
                            : triple_loss(HostLanes{}, g_.loss, scores[0], scores + 1, scores + 1 + n_, n_, rows + 2,
                                          rows + 2 + n_, rows[1], rows[0]);
    coefficients[0] = coefficients[1] = 1.0F;
    std::copy_n(scores + 1, 2 * n_, coefficients + 2);
    float const regular = Triple::finish(HostLanes{}, g_.regulariser, at.slope, t, [=, this](std::size_t k) {
      return sum_of_negatives<typename Triple::N>(scores + 1, sources, stride_, n_, k, Triple::N::count(dim));
    });
    g_.losses[i] = loss_units(at.loss) + loss_units(regular);
    note_largest_source(HostLanes{}, g_, i);
  }

 private:
  StepTriples const& g_;
  std::size_t n_, stride_, padded_;
  Array<float> scratch_;  // the scores, then the queries
};

#endif

template <Space S>
void step_distances(Exec<S> ex, StepTriples const& g) {
  with_distance(g.algebra, [&](auto score) {
    using Score = decltype(score);
#ifndef __CUDACC__
    using N = typename DistanceTriple<Score, Vector>::N;
    if (N::count(g.entities.columns()) >= kLanes) return each_triple<HostDistanceStep<Score>>(ex, g);
#endif
    step_distances_of<Score>(ex, g);
  });
}

}  // namespace gpups::kernels
