// SPDX-License-Identifier: Apache-2.0
// Counts, for each query, the scores that are better than the score of its target, or equal to it.
#pragma once

#include <cstdint>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::trainer {

// The answers of queries: columns of the scores.
struct QueryTargets {
  std::vector<std::uint32_t> targets;     // of each query; not used if their scores are given
  std::vector<std::uint32_t> rows{};      // of scores, for each query; empty: query i has row i
  std::vector<std::uint32_t> left_out;    // distinct columns that the queries of a row do not count
  std::vector<std::uint32_t> offsets{0};  // (rows + 1), into left_out
};

// Returns how many rows of scores are computed together: they take about 64 MiB. It depends on the data only, so a
// block is the same matrix product for every number of ranks.
std::size_t score_rows_at_once(std::size_t columns);

// The counts of a query. A target is equal to itself, unless it is left out.
struct TargetRank {
  std::uint64_t better, equal;
};

// scores: (rows, columns), on the device of `stream`. target_scores: (queries), the scores of the targets if these may
// be in other columns, so that the counts of several matrices can be added up; else empty. Blocks.
std::vector<TargetRank> wait_target_ranks(Stream& stream, MatrixView<float const> scores, QueryTargets const& queries,
                                          View<float const> target_scores = {});

}  // namespace gpups::trainer
