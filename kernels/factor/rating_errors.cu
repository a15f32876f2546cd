// SPDX-License-Identifier: Apache-2.0
#include "kernels/factor/rating_errors.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/factor/rating_errors_host.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/score/activation.hpp"

namespace gpups::kernels {

// The number of ratings whose factors a team loads at the same time.
inline constexpr std::size_t kInFlight = 4;

GPUPS_FN inline float rating_slope(float product, float rating) { return 2.0F * (product - rating); }
GPUPS_FN inline std::int64_t squared_error_units(float slope) {
  double const error = 0.5 * static_cast<double>(slope);
  return loss_units(error * error);
}

template <Space S>
void run(Exec<S> ex, RatingErrors const& g) {
  std::size_t const n = g.ratings.size();
  GPUPS_ASSERT(g.rows_of.size() == n && g.columns_of.size() == n && g.slopes.size() >= n);
  GPUPS_ASSERT(g.losses.size() >= rating_losses(n) && g.rows.columns() == g.columns.columns());
  GPUPS_ASSERT(g.column_biases.empty() || g.column_biases.size() >= g.columns.rows());
#ifndef __CUDACC__
  if (g.rows.columns() >= kLanes) return rating_errors_on_host(ex, g);
#endif
  each_row(ex, rating_losses(n), [g, n] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::size_t const first = i * kRatingsTogether;
    std::size_t const count = n - first < kRatingsTogether ? n - first : kRatingsTogether;
    for (std::size_t k = 0; k < count; k += kInFlight) {
      float products[kInFlight];
      for (std::size_t r = 0; r < kInFlight; ++r) {
        std::size_t const rating = first + (k + r < count ? k + r : k);
        float const* const row = g.rows.row(g.rows_of[rating]);
        float const* const column = g.columns.row(g.columns_of[rating]);
        products[r] = lanes.sum(g.rows.columns(), [=](std::size_t j) { return row[j] * column[j]; });
        if (!g.column_biases.empty()) products[r] += g.column_biases[g.columns_of[rating]];
      }
      for (std::size_t r = 0; r < kInFlight && k + r < count; ++r) {
        if (lanes.first()) g.slopes[first + k + r] = rating_slope(products[r], g.ratings[first + k + r]);
      }
    }
    lanes.sync();
    std::uint64_t const loss = lanes.sum_words(
        count, [&](std::size_t k) { return static_cast<std::uint64_t>(squared_error_units(g.slopes[first + k])); });
    if (lanes.first()) g.losses[i] = static_cast<std::int64_t>(loss);
  });
}

GPUPS_KERNEL(rating_errors, RatingErrors)

template <Space S>
void run(Exec<S> ex, SplitBiases const& s) {
  GPUPS_ASSERT(s.rows.columns() > 0 && s.sources.columns() == s.rows.columns() && s.sources.rows() >= s.rows.rows());
  GPUPS_ASSERT(s.biases.empty() || s.biases.size() >= s.rows.rows());
  std::size_t const last = s.rows.columns() - 1, stride = s.sources.stride();
  each_row(ex, s.rows.rows(), [s, last, stride] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    float const* const from = s.rows.row(i);
    float* const to = s.sources.row(i);
    lanes.each(stride, [=](std::size_t j) { to[j] = j < last ? from[j] : j == last ? 1.0F : 0.0F; });
    if (lanes.first() && !s.biases.empty()) s.biases[i] = s.mean + from[last];
  });
}

GPUPS_KERNEL(split_biases, SplitBiases)

}  // namespace gpups::kernels
