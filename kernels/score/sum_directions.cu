// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/sum_directions.hpp"

#include "kernels/assert.hpp"
#include "kernels/score/distance_triple.hpp"

namespace gpups::kernels {

GPUPS_FN inline float weight(SumDirections const& g, std::size_t i, std::size_t j) {
  return g.transposed ? g.weights.row(j)[i] : g.weights.row(i)[j];
}

// For distances whose direction in one number does not depend on the other numbers: one number at a time.
template <class Score, class T>
GPUPS_FN inline void sum_by_number(NativeLanes lanes, SumDirections const& g, std::size_t i) {
  using N = typename Score::template Relation<T>::Number;
  std::size_t const dim = g.left.columns(), count = N::count(dim);
  float const* const left = g.left.row(i);
  float* const out = g.out.row(i);
  each_number<T>(lanes, count, [&](std::size_t k) {
    N const query = N::at(left, k, count);
    N sum = {};
    for (std::size_t j = 0; j < g.right.rows(); ++j) {
      sum = plus(sum, -weight(g, i, j), apart(minus(query, N::at(g.right.row(j), k, count))).direction);
    }
    sum.put(out, k, count);
  });
  lanes.each(row_stride(dim) - dim, [=](std::size_t k) { out[dim + k] = 0.0F; });
}

// For Euclidean distances, whose direction depends on the whole distance: one right row at a time. Includes the padding
// of rows, so that vectors do not overlap.
template <class T>
GPUPS_FN inline void sum_by_row(NativeLanes lanes, SumDirections const& g, std::size_t i) {
  std::size_t const stride = row_stride(g.left.columns());
  float const* const left = g.left.row(i);
  float* const out = g.out.row(i);
  lanes.each(stride, [=](std::size_t k) { out[k] = 0.0F; });
  for (std::size_t j = 0; j < g.right.rows(); ++j) {
    float const* const right = g.right.row(j);
    float const length = DistanceTriple<TranslationL2, T>::distance(lanes, left, right, stride);
    float const factor = length == 0.0F ? 0.0F : weight(g, i, j) / length;
    each_number<T>(lanes, stride, [=](std::size_t k) {
      store(out + k, load<T>(out + k) - factor * (load<T>(left + k) - load<T>(right + k)));
    });
  }
}

template <class Score, class T, Space S>
void sum_directions_of(Exec<S> ex, SumDirections const& g) {
  each_row(ex, g.out.rows(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    if constexpr (Score::kEuclidean) {
      sum_by_row<T>(lanes, g, i);
    } else {
      sum_by_number<Score, T>(lanes, g, i);
    }
  });
}

template <Space S>
void run(Exec<S> ex, SumDirections const& g) {
  GPUPS_ASSERT(is_distance(g.algebra));
  with_distance(g.algebra, [&](auto score) {
    using Score = decltype(score);
#ifndef __CUDACC__
    if (Score::template Relation<float>::Number::count(g.left.columns()) >= kLanes)
      return sum_directions_of<Score, Vector>(ex, g);
#endif
    sum_directions_of<Score, float>(ex, g);
  });
}

GPUPS_KERNEL(sum_directions, SumDirections)

}  // namespace gpups::kernels
