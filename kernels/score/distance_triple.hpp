// SPDX-License-Identifier: Apache-2.0
// The step of one triple whose score is a margin minus a distance. As NumberTriple, except that the gradient of a
// candidate depends on its own row, so it is written out for each candidate.
#pragma once

#include "kernels/score/distance_math.hpp"
#include "kernels/score/triple_math.hpp"

namespace gpups::kernels {

template <class Score, class T>
struct DistanceTriple {
  using Relation = typename Score::template Relation<T>;
  using N = typename Relation::Number;

  // Writes the rows of the queries.
  template <class Lanes>
  GPUPS_FN static void write_queries(Lanes lanes, TripleRows const& t) {
    std::size_t const count = N::count(t.dim);
    float *const q = t.object_query, *const p = t.subject_query;
    each_number<T>(lanes, count, [=](std::size_t k) {
      Relation const r = Relation::at(t.relation, k);
      r.moved(N::at(t.subject, k, count)).put(q, k, count);
      r.moved_back(N::at(t.object, k, count)).put(p, k, count);
    });
  }

  // Returns the distance of a query and a candidate.
  template <class Lanes>
  GPUPS_FN static float distance(Lanes lanes, float const* query, float const* row, std::size_t dim) {
    std::size_t const count = N::count(dim);
    float const sum = sum_numbers<T>(lanes, count, [=](std::size_t k) {
      N const d = minus(N::at(query, k, count), N::at(row, k, count));
      return Score::kEuclidean ? d.squared() : apart(d).length;
    });
    return Score::kEuclidean ? sqrtf(sum) : sum;
  }

  // The same; also writes the gradient of the score by the candidate's row, including padding.
  template <class Lanes>
  GPUPS_FN static float distance(Lanes lanes, float const* query, float const* row, std::size_t dim, float* gradient) {
    std::size_t const count = N::count(dim);
    lanes.each(row_stride(dim) - dim, [=](std::size_t k) { gradient[dim + k] = 0.0F; });
    if constexpr (Score::kEuclidean) {
      float const length = distance(lanes, query, row, dim), inverse = inverse_of(length);
      each_number<T>(lanes, count, [=](std::size_t k) {
        towards(N::at(query, k, count), N::at(row, k, count), inverse).put(gradient, k, count);
      });
      return length;
    } else {
      return sum_numbers<T>(lanes, count, [=](std::size_t k) {
        auto const at = apart(minus(N::at(query, k, count), N::at(row, k, count)));
        at.direction.put(gradient, k, count);
        return at.length;
      });
    }
  }

  // Writes the gradients of the three rows, and returns the loss of the regulariser, which has no part for angles.
  // query_gradients(k) returns number k of the gradients of q and p, without the part of the positive; slope is the
  // derivative of the loss by the score of the positive. The rows of the queries may be those of the gradients: number
  // k of a query is read before number k of a gradient is written.
  template <class Lanes, class F>
  GPUPS_FN static float finish(Lanes lanes, Regulariser g, float slope, TripleRows const& t, F query_gradients) {
    std::size_t const dim = t.dim, count = N::count(dim);
    float const inverse = Score::kEuclidean ? inverse_of(distance(lanes, t.object_query, t.object, dim)) : 1.0F;
    float const loss = sum_numbers<T>(lanes, count, [=](std::size_t k) {
      N const q = N::at(t.object_query, k, count), p = N::at(t.subject_query, k, count);
      N const s = N::at(t.subject, k, count), o = N::at(t.object, k, count);
      N const towards_object = towards(q, o, inverse);
      auto const [negatives_q, dp] = query_gradients(k);
      N const dq = plus(negatives_q, -slope, towards_object);
      Relation const r = Relation::at(t.relation, k);
      N ds = r.subject_gradient(dq), d_o = plus(r.object_gradient(dp), slope, towards_object);
      RealNumber<T> dr{Relation::relation_gradient(q, dq, p, dp)};
      T const penalties = regularise(g, t.relation, k, s, o, ds, d_o, dr);
      ds.put(t.subject_gradient, k, count);
      d_o.put(t.object_gradient, k, count);
      dr.put(t.relation_gradient, k, count);
      return penalties;
    });
    lanes.each(t.stride - dim, [=](std::size_t k) { t.subject_gradient[dim + k] = t.object_gradient[dim + k] = 0.0F; });
    lanes.each(t.relation_stride - count, [=](std::size_t k) { t.relation_gradient[count + k] = 0.0F; });
    return loss;
  }

 private:
  GPUPS_FN static float inverse_of(float length) { return length == 0.0F ? 0.0F : 1.0F / length; }

  // Returns the gradient of the score by `row`. inverse: 1 / the Euclidean distance.
  GPUPS_FN static N towards(N query, N row, float inverse) {
    N const d = minus(query, row);
    if constexpr (Score::kEuclidean) {
      return {d.re * inverse};
    } else {
      return apart(d).direction;
    }
  }

  // Adds the gradients of the regulariser, and returns its loss.
  GPUPS_FN static T regularise(Regulariser g, float const* relation, std::size_t k, N s, N o, N& ds, N& d_o,
                               RealNumber<T>& dr) {
    if (g.l2 == 0.0F && g.n3 == 0.0F) return T{};
    auto const of_s = penalty(g, s.squared()), of_o = penalty(g, o.squared());
    ds = plus(ds, of_s.slope, s);
    d_o = plus(d_o, of_o.slope, o);
    if constexpr (!Relation::kRegular) return of_s.loss + of_o.loss;
    RealNumber<T> const r = RealNumber<T>::at(relation, k, 0);
    auto const of_r = penalty(g, r.squared());
    dr = plus(dr, of_r.slope, r);
    return of_s.loss + of_r.loss + of_o.loss;
  }
};

}  // namespace gpups::kernels
