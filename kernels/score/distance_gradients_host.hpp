// SPDX-License-Identifier: Apache-2.0
// distance_gradients on the host: a vector of numbers of all rows at a time. Each direction is computed once, for the
// query and for the candidate. Only for pair_rows.cu.
#pragma once

#ifndef __CUDACC__

#include <algorithm>
#include <vector>

#include "kernels/score/pair_rows.hpp"
#include "kernels/score/pair_rows_host.hpp"

namespace gpups::kernels {

// REQUIRES: rows have at least kVector numbers.
template <class Score>
class HostDistanceGradients {
 public:
  // factors: (n, m), of the directions; of the differences if the distance is Euclidean.
  HostDistanceGradients(DistanceGradients const& g, MatrixView<float const> factors)
      : g_(g), factors_(factors), count_(N::count(g.queries.columns())) {}

  std::size_t chunks() const { return (count_ + kVector - 1) / kVector; }

  // Computes the numbers chunk * kVector .. + kVector - 1 of all gradients. The last chunk begins earlier, so that it
  // is whole.
  void operator()(std::size_t chunk) const {
    std::size_t const first = std::min(chunk * kVector, count_ - kVector), skipped = chunk * kVector - first;
    std::vector<N> const queries = numbers(g_.queries, first), candidates = numbers(g_.candidates, first);
    std::vector<N> of_queries(queries.size()), of_candidates(candidates.size());
    for (std::size_t begin = 0; begin < candidates.size(); begin += kTile) {
      std::size_t const end = std::min(begin + kTile, candidates.size());
      for (std::size_t i = 0; i < queries.size(); i += kRows) {
        add<kRows>(std::min(kRows, queries.size() - i), i, begin, end, queries, candidates, of_queries, of_candidates);
      }
    }
    put(of_queries, first, skipped, g_.of_queries);
    put(of_candidates, first, skipped, g_.of_candidates);
  }

 private:
  using N = typename Score::template Relation<Vector>::Number;
  static constexpr std::size_t kTile = 128;                   // candidates that stay in the first-level cache
  static constexpr std::size_t kRows = kVector == 8 ? 2 : 4;  // queries that stay in registers; AVX2 has 16

  std::vector<N> numbers(MatrixView<float const> rows, std::size_t first) const {
    std::vector<N> all(rows.rows());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = N::at(rows.row(i), first, count_);
    return all;
  }

  static auto scaled(float factor, N d) {
    if constexpr (Score::kEuclidean) {
      return ScaledDirection<float, N>{factor, d};  // the factor has the distance
    } else {
      return scaled_direction(factor, d);
    }
  }

  // Adds the pairs of R queries and the candidates begin .. end - 1.
  template <std::size_t R>
  void add(std::size_t i, std::size_t begin, std::size_t end, std::vector<N> const& queries,
           std::vector<N> const& candidates, std::vector<N>& of_queries, std::vector<N>& of_candidates) const {
    N query[R], sum[R];
    float const* factors[R];
#pragma GCC unroll 4
    for (std::size_t r = 0; r < R; ++r) {
      query[r] = queries[i + r];
      sum[r] = of_queries[i + r];
      factors[r] = factors_.row(i + r);
    }
    for (std::size_t j = begin; j < end; ++j) {
      N const candidate = candidates[j];
      N of_candidate = of_candidates[j];
#pragma GCC unroll 4
      for (std::size_t r = 0; r < R; ++r) {
        auto const towards = scaled(factors[r][j], minus(query[r], candidate));
        sum[r] = plus(sum[r], -towards.factor, towards.number);
        of_candidate = plus(of_candidate, towards.factor, towards.number);
      }
      of_candidates[j] = of_candidate;
    }
    for (std::size_t r = 0; r < R; ++r) of_queries[i + r] = sum[r];
  }
  // The same for 1 to R queries.
  template <std::size_t R>
  void add(std::size_t rows, std::size_t i, std::size_t begin, std::size_t end, std::vector<N> const& queries,
           std::vector<N> const& candidates, std::vector<N>& of_queries, std::vector<N>& of_candidates) const {
    if constexpr (R > 1) {
      if (rows < R) return add<R - 1>(rows, i, begin, end, queries, candidates, of_queries, of_candidates);
    }
    add<R>(i, begin, end, queries, candidates, of_queries, of_candidates);
  }

  // Writes numbers from first + skipped on.
  void put(std::vector<N> const& numbers, std::size_t first, std::size_t skipped, MatrixView<float> rows) const {
    constexpr std::size_t kParts = sizeof(N) / sizeof(Vector);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      float parts[kParts * kVector];
      numbers[i].put(parts, 0, kVector);
      for (std::size_t part = 0; part < kParts; ++part) {
        std::copy_n(parts + part * kVector + skipped, kVector - skipped, rows.row(i) + part * count_ + first + skipped);
      }
    }
  }

  DistanceGradients const& g_;
  MatrixView<float const> factors_;
  std::size_t count_;
};

inline void clear_padding(MatrixView<float> rows) {
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    std::fill(rows.row(i) + rows.columns(), rows.row(i) + row_stride(rows.columns()), 0.0F);
  }
}

template <class Score>
void distance_gradients_on_host(HostExec ex, DistanceGradients const& g) {
  clear_padding(g.of_queries);
  clear_padding(g.of_candidates);
  if constexpr (Score::kEuclidean) {
    // The direction is the difference divided by the distance of the whole rows.
    Matrix<float> const factors(Device::host(), g.weights.rows(), g.weights.columns());
    pair_rows(ex, DistancePair<Score>{0}, g.queries, {g.candidates}, factors);
    for (std::size_t i = 0; i < factors.rows(); ++i) {
      float* const row = factors.row(i).data();
      for (std::size_t j = 0; j < factors.columns(); ++j) {
        row[j] = row[j] == 0.0F ? 0.0F : g.weights.row(i)[j] / -row[j];
      }
    }
    HostDistanceGradients<Score> const work(g, factors);
    return ex.arena->blocks(work.chunks(), work);
  } else {
    HostDistanceGradients<Score> const work(g, g.weights);
    ex.arena->blocks(work.chunks(), work);
  }
}

}  // namespace gpups::kernels

#endif
