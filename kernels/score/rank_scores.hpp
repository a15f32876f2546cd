// SPDX-License-Identifier: Apache-2.0
// Counts the scores of a row that are better than the score of a target in it, or equal to it. Reads each score twice,
// the second time from cache: 4 bytes per score.
#pragma once

#include "gpups/array.hpp"

namespace gpups::kernels {

// A target is equal to itself, unless it is in none of the columns or among those that do not count. NaN counts as
// better than every score, itself included, so that a model whose scores are NaN ranks last.
struct RankScores {
  MatrixView<float const> scores;             // (rows, columns)
  View<std::uint32_t const> targets{};        // (queries), < columns; empty: `target_scores` are given
  View<float const> target_scores{};          // (queries): the scores of targets, which may be in other columns
  View<std::uint32_t const> rows{};           // (queries): the row of each query; empty: query i has row i
  View<std::uint32_t const> known_offsets{};  // (rows + 1), into `known`
  View<std::uint32_t const> known{};          // distinct columns that the queries of a row do not count
  // (queries, rank_tiles(columns)): the counts of each tile of the columns; the last element counts the known columns.
  // So the count of a query is the sum of all elements but the last, minus the last.
  View<std::uint32_t> better{};
  View<std::uint32_t> equal{};
};
void rank_scores(Stream& stream, RankScores const& arguments);

inline constexpr std::size_t kRankTileColumns = 4096;
// Returns the number of counts of a query.
constexpr std::size_t rank_tiles(std::size_t columns) {
  return (columns + kRankTileColumns - 1) / kRankTileColumns + 1;
}

}  // namespace gpups::kernels
