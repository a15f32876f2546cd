// SPDX-License-Identifier: Apache-2.0
// The step of one triple by a team of lanes: its queries, its loss for given scores, and the gradients of its three
// rows.
#pragma once

#include <cmath>

#include "kernels/score/activation.hpp"
#include "kernels/score/number.hpp"
#ifndef __CUDACC__
#include "kernels/base/vector.hpp"
#endif

namespace gpups::kernels {

// Number k of the queries: q = s r for objects, and p = o conj(r) for subjects.
template <class N>
struct QueryPair {
  N object, subject;
};
template <class N>
GPUPS_FN inline QueryPair<N> query_pair(N s, N r, N o) {
  return {product(s, r), product_conj(o, r)};
}

// Number k of the gradients of the three rows. row_gradients() computes them from d_object, the gradient of q without
// the part of the positive, and d_subject, the gradient of p; slope is the derivative of the loss by the score of the
// positive.
template <class N>
struct RowGradients {
  N subject, object, relation;
};
template <class N, class Slope>
GPUPS_FN inline RowGradients<N> row_gradients(N s, N r, N o, N q, N d_object, N d_subject, Slope slope) {
  N const dq = plus(d_object, slope, o);
  return {product_conj(dq, r), plus(product(d_subject, r), slope, q),
          plus(product_conj(dq, s), 1.0F, product_conj(o, d_subject))};
}

// l2 |x|^2 + n3 |x|^3, and its gradient divided by x.
template <class T>
struct Penalty {
  T loss, slope;
};
template <class T>
GPUPS_FN inline Penalty<T> penalty(Regulariser g, T squared) {
  if (g.n3 == 0.0F) return {squared * g.l2, T{} + 2.0F * g.l2};
  T const cubic = g.n3 * square_root(squared);
  return {squared * (g.l2 + cubic), 2.0F * g.l2 + 3.0F * cubic};
}
template <class T>
GPUPS_FN inline T regulariser_slope(Regulariser g, T squared) {
  return penalty(g, squared).slope;
}
template <class T>
GPUPS_FN inline T regulariser_loss(Regulariser g, T squared) {
  return penalty(g, squared).loss;
}
// Adds the gradients of the regulariser to d, and returns its loss.
template <class N>
GPUPS_FN inline auto regularise(Regulariser g, RowGradients<N>& d, N s, N r, N o) {
  auto const of_s = penalty(g, s.squared()), of_o = penalty(g, o.squared()), of_r = penalty(g, r.squared());
  d = {plus(d.subject, of_s.slope, s), plus(d.object, of_o.slope, o), plus(d.relation, of_r.slope, r)};
  return of_s.loss + of_r.loss + of_o.loss;
}

// The loss of one side of a triple. The functions below replace the scores of the n negatives by the derivatives of the
// loss by them. A negative is the true answer if rows[j] == answer.
struct SideLoss {
  float loss;
  float slope;  // by the score of the positive; except for kSoftmax the part of the positive is not included
};
template <class Lanes>
GPUPS_FN inline SideLoss self_adversarial(Lanes lanes, float temperature, float* scores, std::size_t n,
                                          std::uint32_t const* rows, std::uint32_t answer) {
  constexpr float kNone = -3e38F;  // the exponent of the true answer, which has weight 0 whatever its score
  auto const weighed = [=](std::size_t j) { return rows[j] == answer ? kNone : temperature * scores[j]; };
  float const most = lanes.max(kNone, n, weighed);
  auto const weight = [=](std::size_t j) { return rows[j] == answer ? 0.0F : exp_negative(weighed(j) - most); };
  float const total = lanes.sum(n, weight);
  float const scale = total == 0.0F ? 0.0F : 1.0F / total;
  float const sum = lanes.sum(n, [=](std::size_t j) {
    Softplus const at = softplus(scores[j]);
    float const share = scale * weight(j);
    scores[j] = share * at.slope;
    return share * at.value;
  });
  lanes.sync();
  return {sum, 0.0F};
}
template <class Lanes>
GPUPS_FN inline SideLoss side_loss(Lanes lanes, Loss loss, float positive, float* scores, std::size_t n,
                                   std::uint32_t const* rows, std::uint32_t answer) {
  if (loss.kind == Loss::Kind::kLogistic) {
    float const sum = lanes.sum(n, [=](std::size_t j) {
      Softplus const at = softplus(scores[j]);
      scores[j] = at.slope;
      return at.value;
    });
    lanes.sync();
    return {sum, 0.0F};
  }
  if (loss.kind == Loss::Kind::kSelfAdversarial)
    return self_adversarial(lanes, loss.temperature, scores, n, rows, answer);
  float const most = lanes.max(positive, n, [=](std::size_t j) { return rows[j] == answer ? positive : scores[j]; });
  float const own = exp_negative(positive - most);
  float const total = own + lanes.sum(n, [=](std::size_t j) {
    float const share = rows[j] == answer ? 0.0F : exp_negative(scores[j] - most);
    scores[j] = share;
    return share;
  });
  float const scale = 1.0F / total;
  lanes.sync();
  lanes.each(n, [=](std::size_t j) { scores[j] *= scale; });
  return {logf(total) + (most - positive), own * scale - 1.0F};
}

// Returns the loss of both sides, or of the objects only if no subjects are given, and replaces all scores by
// derivatives. n: negatives of a side.
template <class Lanes>
GPUPS_FN inline SideLoss triple_loss(Lanes lanes, Loss loss, float positive, float* of_objects, float* of_subjects,
                                     std::size_t n, std::uint32_t const* objects, std::uint32_t const* subjects,
                                     std::uint32_t object, std::uint32_t subject) {
  SideLoss const a = side_loss(lanes, loss, positive, of_objects, n, objects, object);
  SideLoss const b = side_loss(lanes, loss, positive, of_subjects, subjects == nullptr ? 0 : n, subjects, subject);
  if (loss.kind == Loss::Kind::kSoftmax) return {a.loss + b.loss, a.slope + b.slope};
  Softplus const own = softplus(-positive);
  // Once for each side.
  float const times = loss.kind == Loss::Kind::kSelfAdversarial && subjects != nullptr ? 2.0F : 1.0F;
  return {times * own.value + (a.loss + b.loss), -times * own.slope};
}

// Pointers to the rows, queries and gradients of one triple.
struct TripleRows {
  float const *subject, *relation, *object;
  float *object_query, *subject_query;
  float *subject_gradient, *object_gradient, *relation_gradient;
  float* scratch;                            // one row
  std::size_t dim, stride, relation_stride;  // relation_stride: of the relation and its gradient
};
// Returns the rows of triple i, with its queries and gradients in `sources`.
GPUPS_FN inline TripleRows triple_rows(float const* s, float const* r, float const* o, MatrixView<float> sources,
                                       MatrixView<float> relation_sources, std::size_t i) {
  std::size_t const stride = sources.stride();
  float* const own = sources.row(kSourcesPerTriple * i);
  return {.subject = s,
          .relation = r,
          .object = o,
          .object_query = own + kObjectQuery * stride,
          .subject_query = own + kSubjectQuery * stride,
          .subject_gradient = own + kSubjectGradient * stride,
          .object_gradient = own + kObjectGradient * stride,
          .relation_gradient = relation_sources.row(i),
          .scratch = own + kRelationGradient * stride,
          .dim = sources.columns(),
          .stride = stride,
          .relation_stride = row_stride(relation_sources.columns())};
}

// The queries and gradients of a triple whose three rows consist of numbers N.
template <class N>
struct NumberTriple {
  // Writes the rows of the queries, including padding.
  template <class Lanes>
  GPUPS_FN static void write_queries(Lanes lanes, TripleRows const& t) {
    std::size_t const count = N::count(t.dim);
    lanes.each(count, [=](std::size_t k) {
      QueryPair<N> const pair =
          query_pair(N::at(t.subject, k, count), N::at(t.relation, k, count), N::at(t.object, k, count));
      pair.object.put(t.object_query, k, count);
      pair.subject.put(t.subject_query, k, count);
    });
    lanes.each(t.stride - t.dim, [=](std::size_t k) { t.object_query[t.dim + k] = t.subject_query[t.dim + k] = 0.0F; });
  }

  // Replaces the gradients of the queries by the gradients of the three rows, and returns the loss of the regulariser.
  // The gradients of the queries, without the part of the positive, are in the rows for the gradients of subject and
  // object.
  template <class Lanes>
  GPUPS_FN static float finish(Lanes lanes, Regulariser g, float slope, TripleRows const& t) {
    std::size_t const count = N::count(t.dim);
    bool const regular = g.l2 != 0.0F || g.n3 != 0.0F;
    float const *const s = t.subject, *const r = t.relation, *const o = t.object;
    float *const gs = t.subject_gradient, *const go = t.object_gradient, *const gr = t.relation_gradient;
    float const loss = lanes.sum(count, [=](std::size_t k) {
      N const sk = N::at(s, k, count), rk = N::at(r, k, count), ok = N::at(o, k, count);
      RowGradients<N> d =
          row_gradients(sk, rk, ok, N::at(t.object_query, k, count), N::at(gs, k, count), N::at(go, k, count), slope);
      float const here = regular ? regularise(g, d, sk, rk, ok) : 0.0F;
      d.subject.put(gs, k, count);
      d.object.put(go, k, count);
      d.relation.put(gr, k, count);
      return here;
    });
    lanes.each(t.stride - t.dim, [=](std::size_t k) { gs[t.dim + k] = go[t.dim + k] = gr[t.dim + k] = 0.0F; });
    return loss;
  }
};

#ifndef __CUDACC__
// The logistic loss of a triple on the host, from the scores of all its candidates.

// Returns n rounded up to a multiple of kLanes, for loops over whole vectors.
constexpr std::size_t whole_lanes(std::size_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

// Replaces the scores of the positive, which is the first, and of its negatives by the derivatives of the loss. The
// array has room for whole_lanes(count).
inline SideLoss logistic_loss(float* scores, std::size_t count) {
  float loss[kLanes] = {};
  scores[0] = -scores[0];
  for (std::size_t first = 0; first < count; first += kLanes) {
#pragma GCC ivdep
    for (std::size_t k = 0; k < kLanes; ++k) {
      Softplus const at = softplus(scores[first + k]);
      scores[first + k] = at.slope;
      loss[k] += first + k < count ? at.value : 0.0F;
    }
  }
  return {HostLanes{}.sum(kLanes, [&](std::size_t k) { return loss[k]; }), -scores[0]};
}
#endif

}  // namespace gpups::kernels
