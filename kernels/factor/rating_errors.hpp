// SPDX-License-Identifier: Apache-2.0
// Factorizations of ratings: the errors of ratings, and rows without their biases.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// The errors of a factorization: the dot product of a row's and a column's factors, compared with the rating. Reads 2 *
// stride + 12 bytes for each rating, writes 4.

// The number of ratings whose losses are summed into one number.
inline constexpr std::size_t kRatingsTogether = 16;
// Returns the number of these sums.
constexpr std::size_t rating_losses(std::size_t ratings) { return (ratings + kRatingsTogether - 1) / kRatingsTogether; }

// Computes errors and losses, where p is the dot product of row rows_of[i] of `rows` and row columns_of[i] of
// `columns`, plus column_biases[columns_of[i]] if there are biases.
struct RatingErrors {
  MatrixView<float const> rows;          // (any, dim)
  MatrixView<float const> columns;       // (any, dim)
  View<std::uint32_t const> rows_of;     // (n)
  View<std::uint32_t const> columns_of;  // (n)
  View<float const> ratings;             // (n)
  View<float const> column_biases;       // (rows of `columns`) or empty
  View<float> slopes;                    // (n): 2 (p - rating), the derivative of the squared error by p
  // (rating_losses(n)): sums of squared errors, in units of kLossUnit. A squared error above 1024 counts as 1024.
  View<std::int64_t> losses;
};
void rating_errors(Stream& stream, RatingErrors const& arguments);

// Separates the biases of a factorization from its factors. Reads and writes 4 * stride bytes for each row.

// The last column of a row is its bias, whose derivative is 1. So the row with a 1 in this column is what a rating's
// slope is multiplied by to get the gradient of the row on the other side, with its bias.
struct SplitBiases {
  MatrixView<float const> rows;  // (n, dim)
  MatrixView<float> sources;     // (n or more, dim): the rows with 1 as the last column; sets the padding to 0
  View<float> biases;            // (n or more) or empty: mean + the last column
  float mean = 0;                // of all ratings
};
void split_biases(Stream& stream, SplitBiases const& arguments);

}  // namespace gpups::kernels
