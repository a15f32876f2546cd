// SPDX-License-Identifier: Apache-2.0
// The numbers of a distance score: how a relation moves an entity to where its partner should be, and how far another
// entity is from there. T is one float, or a vector of them on the host.
#pragma once

#include "kernels/score/angle.hpp"
#include "kernels/score/inverse_root.hpp"
#include "kernels/score/number.hpp"

namespace gpups::kernels {

// |d|, and the direction d / |d|, which is 0 where d is: there the distance has no derivative, and 0 is a subgradient.
template <class N, class T>
struct Apart {
  T length;
  N direction;
};
template <class T>
GPUPS_FN inline Apart<RealNumber<T>, T> apart(RealNumber<T> d) {
  T const one = T{} + 1.0F;
  return {d.re < 0.0F ? -d.re : d.re, {d.re > 0.0F ? one : d.re < 0.0F ? -one : d.re}};  // not a number stays so
}
template <class T>
GPUPS_FN inline Apart<ComplexNumber<T>, T> apart(ComplexNumber<T> d) {
  T const squared = d.squared(), inverse = inverse_root(squared);
  return {squared * inverse, {d.re * inverse, d.im * inverse}};
}

// Relations of TransE.
template <class T>
struct Translation {
  using Number = RealNumber<T>;
  static constexpr bool kRegular = true;  // parts of it are penalised as entities' are
  T step;

  GPUPS_FN static Translation at(float const* row, std::size_t k) { return {load<T>(row + k)}; }
  GPUPS_FN Number moved(Number s) const { return {s.re + step}; }
  GPUPS_FN Number moved_back(Number o) const { return {o.re - step}; }
  // Gradients of s and o, from those of q = moved(s) and p = moved_back(o).
  GPUPS_FN Number subject_gradient(Number dq) const { return dq; }
  GPUPS_FN Number object_gradient(Number dp) const { return dp; }
  GPUPS_FN static T relation_gradient(Number, Number dq, Number, Number dp) { return dq.re - dp.re; }
};

// Relations of RotatE: angles.
template <class T>
struct Rotation {
  using Number = ComplexNumber<T>;
  static constexpr bool kRegular = false;
  Number turn;  // of modulus 1

  GPUPS_FN static Rotation at(float const* row, std::size_t k) {
    CosineSine<T> const of = cosine_sine(load<T>(row + k));
    return {{of.cosine, of.sine}};
  }
  GPUPS_FN Number moved(Number s) const { return product(s, turn); }
  GPUPS_FN Number moved_back(Number o) const { return product_conj(o, turn); }
  GPUPS_FN Number subject_gradient(Number dq) const { return product_conj(dq, turn); }
  GPUPS_FN Number object_gradient(Number dp) const { return product(dp, turn); }
  // A larger angle moves q by i q, and p by -i p.
  GPUPS_FN static T relation_gradient(Number q, Number dq, Number p, Number dp) {
    return (dq.im * q.re - dq.re * q.im) + (dp.re * p.im - dp.im * p.re);
  }
};

// The scores, for templates. kEuclidean: lengths of numbers are squared and summed before the root, else just summed.
struct TranslationL1 {
  template <class T>
  using Relation = Translation<T>;
  static constexpr bool kEuclidean = false;
};
struct TranslationL2 {
  template <class T>
  using Relation = Translation<T>;
  static constexpr bool kEuclidean = true;
};
struct RotationModuli {
  template <class T>
  using Relation = Rotation<T>;
  static constexpr bool kEuclidean = false;
};

// Calls f(Score{}) for one of the above.
template <class F>
inline void with_distance(Algebra algebra, F f) {
  if (algebra == Algebra::kTranslationL1) return f(TranslationL1{});
  if (algebra == Algebra::kTranslationL2) return f(TranslationL2{});
  f(RotationModuli{});
}

}  // namespace gpups::kernels
