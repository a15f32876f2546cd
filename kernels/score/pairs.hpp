// SPDX-License-Identifier: Apache-2.0
// The functions of a pair of rows that pair_rows() can compute: each is a sum over the numbers of the rows. The left
// number is a single one; the right one is a single one, or a vector with the numbers of several rows.
#pragma once

#include "kernels/score/distance_math.hpp"

namespace gpups::kernels {

// The dot product.
struct DotPair {
  template <class T>
  using Number = RealNumber<T>;
  static constexpr std::size_t kParts = 1;  // floats per number

  template <class T>
  GPUPS_FN static T add(T sum, RealNumber<float> a, RealNumber<T> b) {
    return multiply_add(a.re, b.re, sum);
  }
  template <class T>
  GPUPS_FN T result(T sum) const {
    return sum;
  }
};

// The score of a right row, where the left row is a query and the score is a distance.
template <class Score>
struct DistancePair {
  template <class T>
  using Number = typename Score::template Relation<T>::Number;
  static constexpr std::size_t kParts = sizeof(Number<float>) / sizeof(float);
  float margin;

  template <class T>
  GPUPS_FN static T add(T sum, Number<float> a, Number<T> b) {
    auto const d = minus(a, b);
    return Score::kEuclidean ? sum + d.squared() : sum + apart(d).length;
  }
  template <class T>
  GPUPS_FN T result(T sum) const {
    return margin - (Score::kEuclidean ? square_root(sum) : sum);
  }
};

}  // namespace gpups::kernels
