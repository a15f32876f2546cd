// SPDX-License-Identifier: Apache-2.0
// How far a factorization is from ratings: the product of a row's and a column's factors, beside what it should be.
// Reads 2 * stride + 12 bytes for each rating, writes 4.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// Ratings whose losses are summed together.
inline constexpr std::size_t kRatingsTogether = 16;
constexpr std::size_t rating_losses(std::size_t ratings) { return (ratings + kRatingsTogether - 1) / kRatingsTogether; }

// With p the dot product of row rows_of[i] of `rows` and row columns_of[i] of `columns`:
struct RatingErrors {
  MatrixView<float const> rows;          // (any, dim)
  MatrixView<float const> columns;       // (any, dim)
  View<std::uint32_t const> rows_of;     // (n)
  View<std::uint32_t const> columns_of;  // (n)
  View<float const> ratings;             // (n)
  View<float> slopes;                    // (n): 2 (p - rating), what the squared error's slope by p is
  // (rating_losses(n)): sums of squared errors, in units of kLossUnit, each error's square counted as 1024 at most
  View<std::int64_t> losses;
};
void rating_errors(Stream& stream, RatingErrors const& arguments);

}  // namespace gpups::kernels
