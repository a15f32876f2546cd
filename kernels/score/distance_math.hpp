// SPDX-License-Identifier: Apache-2.0
// The arithmetic of distance scores, number by number: the relation moves the row of an entity, and the score depends
// on the distance from the moved row to the row of another entity. T is one float, or a vector of floats on the host.
#pragma once

#include <cstdint>

#include "kernels/base/vector.hpp"
#include "kernels/score/number.hpp"

namespace gpups::kernels {

// 1 / sqrt(x) by two steps of Newton's method from an initial estimate. Takes a fraction of the time of a root and a
// division, has no branches, and gives the same bits on every machine. Relative errors are below 8e-7.

// Returns 1 / sqrt(x) for x >= 0. Finite at 0, so that x * inverse_root(x) gives sqrt(0) = 0.
template <class T>
GPUPS_FN inline T inverse_root(T x) {
  // Halves and negates the exponent, which is within 4 % of the result. Newton's steps have 1.5 as the constant, after
  // which all results are too small; these constants make the largest errors above and below equal.
  T const y = from_bits<T>(0x5F376A00 - (bits_of(x) >> 1)), minus_half = -0.5F * x;
  T const better = y * multiply_add(minus_half * y, y, 1.5009F);
  return better * multiply_add(minus_half * better, better, 1.5000006F);
}

// Cosine and sine together, without branches or calls, of a float or a vector of floats. Absolute errors are below 2e-7
// for angles up to 1000, and grow with larger angles.
template <class T>
struct CosineSine {
  T cosine, sine;
};
// x: in radians.
template <class T>
GPUPS_FN inline CosineSine<T> cosine_sine(T x) {
  T const shifted = multiply_add(x, 0.636619772F, 0x1.8p23F);  // rounds to whole quarter turns, in the low bits
  T const n = shifted - 0x1.8p23F;
  // pi / 2 in three parts
  T const r = multiply_add(n, -0x1.54442ep-20F, multiply_add(n, -0x1.fap-12F, multiply_add(n, -0x1.92p0F, x)));
  T const z = r * r;
  // A least-squares fit at Chebyshev nodes for |r| <= pi / 4.
  T const a = multiply_add(multiply_add(-1.9497271e-4F, z, 8.3319842e-3F), z, -1.6666650e-1F);
  T const b = multiply_add(multiply_add(multiply_add(2.4371513e-5F, z, -1.3886527e-3F), z, 4.1666614e-2F), z, -0.5F);
  T const sine = multiply_add(r * z, a, r), cosine = multiply_add(z, b, 1.0F);

  auto const quarters = bits_of(shifted);
  auto const odd = (quarters & 1) != 0;
  T const c = odd ? sine : cosine, s = odd ? cosine : sine;
  return {from_bits<T>(bits_of(c) ^ ((quarters + 1) & 2) << 30), from_bits<T>(bits_of(s) ^ (quarters & 2) << 30)};
}

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
