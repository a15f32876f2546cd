// SPDX-License-Identifier: Apache-2.0
// The arithmetic of distance scores, number by number: the relation moves the row of an entity, and the score depends
// on the distance from the moved row to the row of another entity. T is one float, or a vector of floats on the host.
#pragma once

#include "kernels/score/angle.hpp"
#include "kernels/score/inverse_root.hpp"
#include "kernels/score/number.hpp"

namespace gpups::kernels {

// The length |d| of a difference and its direction d / |d|. The direction is 0 at d = 0, where the distance has no
// derivative and 0 is a subgradient.
template <class N, class T>
struct Apart {
  T length;
  N direction;
};
template <class T>
GPUPS_FN inline Apart<RealNumber<T>, T> apart(RealNumber<T> d) {
  T const one = T{} + 1.0F;
  return {from_bits<T>(bits_of(d.re) & 0x7FFFFFFFU), {d.re > 0.0F ? one : d.re < 0.0F ? -one : d.re}};  // NaN stays NaN
}
template <class T>
GPUPS_FN inline Apart<ComplexNumber<T>, T> apart(ComplexNumber<T> d) {
  T const squared = d.squared(), inverse = inverse_root(squared);
  return {squared * inverse, {d.re * inverse, d.im * inverse}};
}

// A factor times the direction of d, as a product.
template <class Factor, class N>
struct ScaledDirection {
  Factor factor;
  N number;
};
template <class T>
GPUPS_FN inline ScaledDirection<float, RealNumber<T>> scaled_direction(float factor, RealNumber<T> d) {
  return {factor, apart(d).direction};
}
template <class T>
GPUPS_FN inline ScaledDirection<T, ComplexNumber<T>> scaled_direction(float factor, ComplexNumber<T> d) {
  return {factor * inverse_root(d.squared()), d};
}

// The relations of TransE: q = s + r and p = o - r.
template <class T>
struct Translation {
  using Number = RealNumber<T>;
  static constexpr bool kRegular = true;  // the regulariser includes the row of the relation
  T step;

  GPUPS_FN static Translation at(float const* row, std::size_t k) { return {load<T>(row + k)}; }
  GPUPS_FN Number moved(Number s) const { return {s.re + step}; }
  GPUPS_FN Number moved_back(Number o) const { return {o.re - step}; }
  // The gradients of s and o, given those of q = moved(s) and p = moved_back(o).
  GPUPS_FN Number subject_gradient(Number dq) const { return dq; }
  GPUPS_FN Number object_gradient(Number dp) const { return dp; }
  GPUPS_FN static T relation_gradient(Number, Number dq, Number, Number dp) { return dq.re - dp.re; }
};

// The relations of RotatE: angles.
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
  // The derivative by the angle: q changes by i q, and p by -i p.
  GPUPS_FN static T relation_gradient(Number q, Number dq, Number p, Number dp) {
    return (dq.im * q.re - dq.re * q.im) + (dp.re * p.im - dp.im * p.re);
  }
};

// The scores, as template arguments. kEuclidean: the distance is the root of the sum of squared lengths; otherwise it
// is the sum of the lengths.
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

// Calls f(Score{}) with the score of this algebra.
template <class F>
inline void with_distance(Algebra algebra, F f) {
  if (algebra == Algebra::kTranslationL1) return f(TranslationL1{});
  if (algebra == Algebra::kTranslationL2) return f(TranslationL2{});
  f(RotationModuli{});
}

}  // namespace gpups::kernels
