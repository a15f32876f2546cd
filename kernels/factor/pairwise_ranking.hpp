// SPDX-License-Identifier: Apache-2.0
// A step of Bayesian personalized ranking (BPR, Rendle et al. 2009): the score of a user and an item, the dot product
// of their rows, should be larger for an item that the user chose than for items that were drawn. Reads 4 * stride
// bytes for each user and each item twice, the second time from cache, and writes 4 * stride bytes for each user.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// With p the score of a sample's item and s that of a negative, the loss of the sample is the mean of softplus(s - p)
// over its negatives. The gradient of an item's row is its slope times the user's row.
struct PairwiseRanking {
  MatrixView<float const> users;        // (any, dim)
  MatrixView<float const> items;        // (any, dim), with the same stride
  View<std::uint32_t const> user_rows;  // (n): the row of each sample's user
  View<std::uint32_t const> item_rows;  // (n * (1 + negatives)): of each sample's item, and then of its negatives
  std::uint32_t negatives;              // of each sample, at least 1
  MatrixView<float> user_gradients;     // (n or more, dim), with the same stride
  View<std::uint32_t> users_of_items;   // (n * (1 + negatives)): the row of the user, for each item
  View<float> slopes;                   // (n * (1 + negatives)): the derivative of the loss by the item's score
  View<std::int64_t> losses;            // (n), in units of kLossUnit
};
void pairwise_ranking(Stream& stream, PairwiseRanking const& arguments);

}  // namespace gpups::kernels
