// SPDX-License-Identifier: Apache-2.0
// step_triples on the host, for long rows: vectors, eight dot products at a time, and prefetch of the rows of later
// triples. Only for step_triples.cu.
#pragma once

#ifndef __CUDACC__

#include <algorithm>

#include "kernels/base/vector.hpp"
#include "kernels/score/each_triple.hpp"
#include "kernels/score/step_triples.hpp"
#include "kernels/score/triple_math.hpp"

namespace gpups::kernels {

// Computes triples one by one. Candidate c of a triple is its object (c = 0), a negative for the object (1 .. n), or a
// negative for the subject (n + 1 .. 2 n); its row is number 1 + c of the triple's entity rows.
template <class N>
class HostTripleStep {
 public:
  explicit HostTripleStep(StepTriples const& g)
      : g_(g),
        n_(g.negatives),
        dim_(g.entities.columns()),
        stride_(g.entities.stride()),
        padded_(whole_lanes(1 + 2 * n_)),
        scratch_(Device::host(), padded_ + 2 * stride_) {}

  // Always inlined, since g++ removes calls of a function that only prefetches.
  [[gnu::always_inline]] void prefetch(std::size_t i) const {
    std::uint32_t const* const rows = g_.entity_rows.data() + i * (2 + 2 * n_);
    prefetch_row(g_.relations.row(g_.relation_rows[i]));
    for (std::size_t e = 0; e < 2 + 2 * n_; ++e) prefetch_row(g_.entities.row(rows[e]));
    float* const sources = g_.sources.row(kSourcesPerTriple * i);
    for (std::size_t k = 0; k < kSourcesPerTriple * stride_; k += kLanes) __builtin_prefetch(sources + k, 1);
  }

  void operator()(std::size_t i) const {
    std::uint32_t const* const rows = g_.entity_rows.data() + i * (2 + 2 * n_);
    float* const coefficients = g_.coefficients.data() + i * (2 + 2 * n_);
    float const* const s = g_.entities.row(rows[0]);
    float const* const o = g_.entities.row(rows[1]);
    float const* const r = g_.relations.row(g_.relation_rows[i]);
    float* const sources = g_.sources.row(kSourcesPerTriple * i);
    float* const q = sources + kObjectQuery * stride_;
    float* const p = sources + kSubjectQuery * stride_;

    std::size_t const count = N::count(dim_);
    each_vector(count, [&](std::size_t k) {
      QueryPair<N> const pair = query_pair(N::at(s, k, count), N::at(r, k, count), N::at(o, k, count));
      pair.object.put(q, k, count);
      pair.subject.put(p, k, count);
    });
    for (std::size_t k = dim_; k < stride_; ++k) q[k] = p[k] = 0.0F;

    float* const scores = scratch_.data();
    dot_products(q, p, rows + 1, scores);
    SideLoss const at = g_.loss.kind == Loss::Kind::kLogistic
                            ? logistic_loss(scores, 1 + 2 * n_)
                            : triple_loss(HostLanes{}, g_.loss, scores[0], scores + 1, scores + 1 + n_, n_, rows + 2,
                                          rows + 2 + n_, rows[1], rows[0]);
    coefficients[0] = coefficients[1] = 1.0F;
    std::copy_n(scores + 1, 2 * n_, coefficients + 2);

    float* const dq = scores + padded_;
    float* const dp = dq + stride_;
    mix(scores + 1, rows + 2, dq);
    mix(scores + 1 + n_, rows + 2 + n_, dp);
    float const regular = finish(at.slope, s, r, o, q, dq, dp, sources, g_.relation_sources.row(i));
    g_.losses[i] = loss_units(at.loss) + loss_units(regular);
    note_largest_source(HostLanes{}, g_, i);
  }

 private:
  [[gnu::always_inline]] void prefetch_row(float const* row) const {
    HostLanes{}.prefetch(row, stride_ * sizeof(float));
  }

  // The number of rows whose dot products are computed at a time.
  static constexpr std::size_t kTogether = kAccumulators / Partials::kVectors;

  // Computes R dot products of one query, as vectors of partial sums.
  template <std::size_t R>
  void dots(float const* query, std::uint32_t const* rows, Vector* sums) const {
    float const* row[R];
    Partials sum[R] = {};
    for (std::size_t c = 0; c < R; ++c) row[c] = g_.entities.row(rows[c]);
    for (std::size_t k = 0; k < stride_; k += kLanes) {
#pragma GCC unroll 4
      for (std::size_t v = 0; v < Partials::kVectors; ++v) {
        Vector const factor = load<Vector>(query + k + v * kVector);
#pragma GCC unroll 8
        for (std::size_t c = 0; c < R; ++c)
          sum[c].of[v] = multiply_add(factor, load<Vector>(row[c] + k + v * kVector), sum[c].of[v]);
      }
    }
    for (std::size_t c = 0; c < R; ++c) sums[c] = sum[c].fold();
  }
  // The same for 1 to kTogether rows.
  template <std::size_t R = kTogether>
  void dots(std::size_t count, float const* query, std::uint32_t const* rows, Vector* sums) const {
    if constexpr (R > 1) {
      if (count < R) return dots<R - 1>(count, query, rows, sums);
    }
    dots<R>(query, rows, sums);
  }

  // Computes the scores of all candidates, and sets the rest up to padded_ to 0.
  void dot_products(float const* q, float const* p, std::uint32_t const* rows, float* scores) const {
    Vector sums[kVector];
    for (std::size_t c = 0; c < padded_;) {
      if (c < 1 + 2 * n_) {
        std::size_t const side_end = c <= n_ ? 1 + n_ : 1 + 2 * n_;
        std::size_t const count = std::min({kTogether, kVector - c % kVector, side_end - c});
        dots(count, c <= n_ ? q : p, rows + c, sums + c % kVector);
        c += count;
      } else {
        sums[c++ % kVector] = Vector{};
      }
      if (c % kVector == 0) store(scores + c - kVector, sums_of(sums));
    }
  }

  // Computes C vectors, from column k on, of the sum of weights[j] * row j over the negatives of one side.
  template <std::size_t C>
  void mix(float const* weights, std::uint32_t const* rows, std::size_t k, float* out) const {
    Vector sum[C] = {};
    for (std::size_t j = 0; j < n_; ++j) {
      float const* const row = g_.entities.row(rows[j]) + k;
#pragma GCC unroll 16
      for (std::size_t c = 0; c < C; ++c) sum[c] = multiply_add(weights[j], load<Vector>(row + c * kVector), sum[c]);
    }
    for (std::size_t c = 0; c < C; ++c) store(out + k + c * kVector, sum[c]);
  }
  // The same for all columns from k on: C vectors at a time, then the remaining ones together.
  template <std::size_t C = kAccumulators>
  void mix_from(float const* weights, std::uint32_t const* rows, std::size_t k, float* out) const {
    for (; k + C * kVector <= stride_; k += C * kVector) mix<C>(weights, rows, k, out);
    if constexpr (C > 1) mix_from<C - 1>(weights, rows, k, out);
  }
  void mix(float const* weights, std::uint32_t const* rows, float* out) const { mix_from(weights, rows, 0, out); }

  // As NumberTriple::finish(), given dq and dp.
  float finish(float slope, float const* s, float const* r, float const* o, float const* q, float const* dq,
               float const* dp, float* sources, float* gr) const {
    float* const gs = sources + kSubjectGradient * stride_;
    float* const go = sources + kObjectGradient * stride_;
    std::size_t const count = N::count(dim_);
    bool const regular = g_.regulariser.l2 != 0.0F || g_.regulariser.n3 != 0.0F;
    auto const finish_at = [&](std::size_t k) {
      N const sk = N::at(s, k, count), rk = N::at(r, k, count), ok = N::at(o, k, count);
      RowGradients<N> d =
          row_gradients(sk, rk, ok, N::at(q, k, count), N::at(dq, k, count), N::at(dp, k, count), slope);
      Vector const loss = regular ? regularise(g_.regulariser, d, sk, rk, ok) : Vector{};
      d.subject.put(gs, k, count);
      d.object.put(go, k, count);
      d.relation.put(gr, k, count);
      return loss;
    };
    float const loss = sum_vectors(count, finish_at);
    for (std::size_t k = dim_; k < stride_; ++k) gs[k] = go[k] = gr[k] = 0.0F;
    return loss;
  }

  StepTriples const& g_;
  std::size_t n_, dim_, stride_, padded_;
  Array<float> scratch_;  // the scores, dq and dp
};

}  // namespace gpups::kernels

#endif
