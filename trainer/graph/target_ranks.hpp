// SPDX-License-Identifier: Apache-2.0
// Counts, for each query, the scores that are better than the score of its target, or equal to it.
#pragma once

#include <cstdint>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::trainer {

// The answers of queries: columns of the scores.
struct QueryTargets {
  std::vector<std::uint32_t> targets;     // of each query
  std::vector<std::uint32_t> left_out;    // distinct columns that a query does not count; its target is one of them
  std::vector<std::uint32_t> offsets{0};  // (queries + 1), into left_out
};

// The counts of a query.
struct TargetRank {
  std::uint64_t better, equal;
};

// scores: (queries, columns), on the device of `stream`. Blocks.
std::vector<TargetRank> wait_target_ranks(Stream& stream, MatrixView<float const> scores, QueryTargets const& queries);

}  // namespace gpups::trainer
