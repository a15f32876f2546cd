// SPDX-License-Identifier: Apache-2.0
// Counts how many scores of a row are better than that of its target, or equal to it. Reads a score twice, from cache
// the second time: 4 bytes per score.
#pragma once

#include "gpups/array.hpp"

namespace gpups::kernels {

// A score that is not a number counts as better than any other, and than itself: a broken model ranks last.
struct RankScores {
  MatrixView<float const> scores;             // (queries, columns)
  View<std::uint32_t const> targets;          // (queries), < columns
  View<std::uint32_t const> known_offsets{};  // (queries + 1), into `known`
  View<std::uint32_t const> known{};          // distinct columns of a query to be left out, its target among them
  // (queries, rank_tiles(columns)): counts in each tile of the columns; in the last one, of what is to be left out.
  // So a query's count is the sum of all but the last, minus the last.
  View<std::uint32_t> better{};
  View<std::uint32_t> equal{};
};
void rank_scores(Stream& stream, RankScores const& arguments);

inline constexpr std::size_t kRankTileColumns = 4096;
constexpr std::size_t rank_tiles(std::size_t columns) {
  return (columns + kRankTileColumns - 1) / kRankTileColumns + 1;
}

}  // namespace gpups::kernels
