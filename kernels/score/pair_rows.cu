// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/pair_rows.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/score/distance_gradients_host.hpp"
#include "kernels/score/distance_triple.hpp"
#ifdef __CUDACC__
#include "kernels/score/pair_rows_device.hpp"
#else
#include "kernels/score/pair_rows_host.hpp"
#endif

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, DotRows const& g) {
  pair_rows(ex, DotPair{}, g.left, g.right, g.out);
}

GPUPS_KERNEL(dot_rows, DotRows)

template <Space S>
void run(Exec<S> ex, DistanceRows const& g) {
  GPUPS_ASSERT(is_distance(g.algebra));
  with_distance(g.algebra,
                [&](auto score) { pair_rows(ex, DistancePair<decltype(score)>{g.margin}, g.left, g.right, g.out); });
}

GPUPS_KERNEL(distance_rows, DistanceRows)

// One side of the gradients: out.row(i) = the sum over j of weight(i, j) times the gradient of the score by
// left.row(i).
struct SideGradients {
  MatrixView<float const> left, right, weights;
  bool transposed;  // weights are (right, left)
  MatrixView<float> out;
};

GPUPS_FN inline float weight(SideGradients const& g, std::size_t i, std::size_t j) {
  return g.transposed ? g.weights.row(j)[i] : g.weights.row(i)[j];
}

// For distances whose direction in one number does not depend on the other numbers: one number at a time.
template <class Score>
GPUPS_FN inline void sum_by_number(NativeLanes lanes, SideGradients const& g, std::size_t i) {
  using N = typename Score::template Relation<float>::Number;
  std::size_t const dim = g.left.columns(), count = N::count(dim);
  float const* const left = g.left.row(i);
  float* const out = g.out.row(i);
  lanes.each(count, [&](std::size_t k) {
    N const query = N::at(left, k, count);
    N sum = {};
    for (std::size_t j = 0; j < g.right.rows(); ++j) {
      auto const towards = scaled_direction(weight(g, i, j), minus(query, N::at(g.right.row(j), k, count)));
      sum = plus(sum, -towards.factor, towards.number);
    }
    sum.put(out, k, count);
  });
  lanes.each(row_stride(dim) - dim, [=](std::size_t k) { out[dim + k] = 0.0F; });
}

// For Euclidean distances, whose direction depends on the whole distance: one right row at a time, with padding.
GPUPS_FN inline void sum_by_row(NativeLanes lanes, SideGradients const& g, std::size_t i) {
  std::size_t const stride = row_stride(g.left.columns());
  float const* const left = g.left.row(i);
  float* const out = g.out.row(i);
  lanes.each(stride, [=](std::size_t k) { out[k] = 0.0F; });
  for (std::size_t j = 0; j < g.right.rows(); ++j) {
    float const* const right = g.right.row(j);
    float const length = DistanceTriple<TranslationL2, float>::distance(lanes, left, right, stride);
    float const factor = length == 0.0F ? 0.0F : weight(g, i, j) / length;
    lanes.each(stride, [=](std::size_t k) { out[k] = multiply_add(-factor, left[k] - right[k], out[k]); });
  }
}

template <class Score, Space S>
void sum_directions_of(Exec<S> ex, SideGradients const& g) {
  each_row(ex, g.out.rows(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    if constexpr (Score::kEuclidean) {
      sum_by_row(lanes, g, i);
    } else {
      sum_by_number<Score>(lanes, g, i);
    }
  });
}

template <Space S>
void run(Exec<S> ex, DistanceGradients const& g) {
  GPUPS_ASSERT(is_distance(g.algebra));
  with_distance(g.algebra, [&](auto score) {
    using Score = decltype(score);
#ifndef __CUDACC__
    if (Score::template Relation<float>::Number::count(g.queries.columns()) >= kVector)
      return distance_gradients_on_host<Score>(ex, g);
#endif
    sum_directions_of<Score>(ex, SideGradients{g.queries, g.candidates, g.weights, false, g.of_queries});
    sum_directions_of<Score>(ex, SideGradients{g.candidates, g.queries, g.weights, true, g.of_candidates});
  });
}

GPUPS_KERNEL(distance_gradients, DistanceGradients)

}  // namespace gpups::kernels
