// SPDX-License-Identifier: Apache-2.0
// rating_errors on the host: computes 16 dot products at a time, and prefetches the factors of the next 16 ratings.
// Only for rating_errors.cu.
#pragma once

#ifndef __CUDACC__

#include <algorithm>

#include "kernels/base/vector.hpp"
#include "kernels/factor/rating_errors.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/score/types.hpp"

namespace gpups::kernels {

static_assert(kRatingsTogether == kLanes);

// Computes the errors of ratings in groups of 16.
class HostRatingErrors {
 public:
  explicit HostRatingErrors(RatingErrors const& g) : g_(g), dim_(g.rows.columns()), stride_(g.rows.stride()) {}

  [[gnu::always_inline]] void prefetch(std::size_t rating) const {
    float const* const row = g_.rows.row(g_.rows_of[rating]);
    float const* const column = g_.columns.row(g_.columns_of[rating]);
    for (std::size_t j = 0; j < dim_; j += kLanes) {
      __builtin_prefetch(row + j);
      __builtin_prefetch(column + j);
    }
  }

  // Computes ratings first .. first + 15.
  void sixteen(std::size_t first, std::int64_t& loss) const {
    loss = 0;
    for (std::size_t k = first; k < first + kLanes; k += kVector) {
      Vector sums[kVector];
      for (std::size_t l = 0; l < kVector; ++l) sums[l] = products(k + l);
      Vector const slopes = 2.0F * (with_biases(sums_of(sums), k, kVector) - load<Vector>(g_.ratings.data() + k));
      store(g_.slopes.data() + k, slopes);
      loss += squared_errors(slopes, kVector);
    }
  }
  // The same for `count` < 16 ratings.
  void some(std::size_t first, std::size_t count, std::int64_t& loss) const {
    loss = 0;
    for (std::size_t k = 0; k < count; k += kVector) {
      std::size_t const here = std::min(kVector, count - k);
      Vector sums[kVector] = {}, ratings = {};
      for (std::size_t l = 0; l < here; ++l) sums[l] = products(first + k + l);
      for (std::size_t l = 0; l < here; ++l) ratings[l] = g_.ratings[first + k + l];
      Vector const slopes = 2.0F * (with_biases(sums_of(sums), first + k, here) - ratings);
      for (std::size_t l = 0; l < here; ++l) g_.slopes[first + k + l] = slopes[l];
      loss += squared_errors(slopes, here);
    }
  }

 private:
  // Returns partial sums of the products of columns: those of columns l, l + 16, ... are one. The padding adds zeros.
  Vector products(std::size_t rating) const {
    float const* const row = g_.rows.row(g_.rows_of[rating]);
    float const* const column = g_.columns.row(g_.columns_of[rating]);
    Partials sum = {};
    for (std::size_t j = 0; j < stride_; j += kLanes) {
      for (std::size_t v = 0; v < Partials::kVectors; ++v) {
        std::size_t const k = j + v * kVector;
        sum.of[v] = multiply_add(load<Vector>(row + k), load<Vector>(column + k), sum.of[v]);
      }
    }
    return sum.fold();
  }
  // Adds the biases of ratings first .. first + count - 1.
  Vector with_biases(Vector sums, std::size_t first, std::size_t count) const {
    if (g_.column_biases.empty()) return sums;
    for (std::size_t l = 0; l < count; ++l) sums[l] += g_.column_biases[g_.columns_of[first + l]];
    return sums;
  }
  // The same bits as squared_error_units().
  static std::int64_t squared_errors(Vector slopes, std::size_t count) {
    std::int64_t loss = 0;
    for (std::size_t k = 0; k < count; ++k) {
      double const error = 0.5 * static_cast<double>(slopes[k]), square = error * error;
      loss += static_cast<std::int64_t>((square < 0x1p10 ? square : 0x1p10) * 0x1p30);
    }
    return loss;
  }

  RatingErrors const& g_;
  std::size_t dim_, stride_;
};

inline void rating_errors_on_host(HostExec ex, RatingErrors const& g) {
  std::size_t const n = g.ratings.size();
  constexpr std::size_t kBlock = kBlockRows * kRatingsTogether;
  ex.arena->blocks((n + kBlock - 1) / kBlock, [&](std::size_t block) {
    HostRatingErrors const errors(g);
    std::size_t const first = block * kBlock, last = std::min(first + kBlock, n);
    std::size_t i = first;
    for (; i + kLanes <= last; i += kLanes) {
      for (std::size_t k = i + kLanes; k < std::min(i + 2 * kLanes, last); ++k) errors.prefetch(k);
      errors.sixteen(i, g.losses[i / kRatingsTogether]);
    }
    if (i < last) errors.some(i, last - i, g.losses[i / kRatingsTogether]);
  });
}

}  // namespace gpups::kernels

#endif
