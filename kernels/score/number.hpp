// SPDX-License-Identifier: Apache-2.0
// The numbers of rows, real or complex, over T: one float, or a vector of floats on the host.
#pragma once

#include <cstddef>

#include "kernels/base/vector.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/score/types.hpp"

namespace gpups::kernels {

// Number k of a row that has `count` numbers; for vectors, number k and those after it.
template <class T>
struct RealNumber {
  using One = RealNumber<float>;
  T re;

  GPUPS_FN static std::size_t count(std::size_t dim) { return dim; }
  GPUPS_FN static RealNumber at(float const* row, std::size_t k, std::size_t) { return {load<T>(row + k)}; }
  GPUPS_FN void put(float* row, std::size_t k, std::size_t) const { store(row + k, re); }
  GPUPS_FN T squared() const { return re * re; }
};
template <class T>
struct ComplexNumber {
  using One = ComplexNumber<float>;
  T re, im;

  GPUPS_FN static std::size_t count(std::size_t dim) { return dim / 2; }
  GPUPS_FN static ComplexNumber at(float const* row, std::size_t k, std::size_t count) {
    return {load<T>(row + k), load<T>(row + count + k)};
  }
  GPUPS_FN void put(float* row, std::size_t k, std::size_t count) const {
    store(row + k, re);
    store(row + count + k, im);
  }
  GPUPS_FN T squared() const { return multiply_add(re, re, im * im); }
};

// Returns a b.
template <class T>
GPUPS_FN inline RealNumber<T> product(RealNumber<T> a, RealNumber<T> b) {
  return {a.re * b.re};
}
template <class T>
GPUPS_FN inline ComplexNumber<T> product(ComplexNumber<T> a, ComplexNumber<T> b) {
  return {multiply_add(a.re, b.re, -(a.im * b.im)), multiply_add(a.re, b.im, a.im * b.re)};
}
// Returns a conj(b).
template <class T>
GPUPS_FN inline RealNumber<T> product_conj(RealNumber<T> a, RealNumber<T> b) {
  return {a.re * b.re};
}
template <class T>
GPUPS_FN inline ComplexNumber<T> product_conj(ComplexNumber<T> a, ComplexNumber<T> b) {
  return {multiply_add(a.re, b.re, a.im * b.im), multiply_add(a.im, b.re, -(a.re * b.im))};
}
// Returns a + factor * b.
template <class T, class Factor>
GPUPS_FN inline RealNumber<T> plus(RealNumber<T> a, Factor factor, RealNumber<T> b) {
  return {multiply_add(factor, b.re, a.re)};
}
template <class T, class Factor>
GPUPS_FN inline ComplexNumber<T> plus(ComplexNumber<T> a, Factor factor, ComplexNumber<T> b) {
  return {multiply_add(factor, b.re, a.re), multiply_add(factor, b.im, a.im)};
}

// Returns a - b. One of them may be a single number and the other a vector.
template <class A, class B>
GPUPS_FN inline auto minus(RealNumber<A> a, RealNumber<B> b) {
  return RealNumber<decltype(a.re - b.re)>{a.re - b.re};
}
template <class A, class B>
GPUPS_FN inline auto minus(ComplexNumber<A> a, ComplexNumber<B> b) {
  return ComplexNumber<decltype(a.re - b.re)>{a.re - b.re, a.im - b.im};
}

}  // namespace gpups::kernels
