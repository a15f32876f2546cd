// SPDX-License-Identifier: Apache-2.0
// Pairs of words or nodes that were held out of training, and how well vectors tell them from pairs by chance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/step/task.hpp"
#include "trainer/tasks/words/skip_gram_groups.hpp"

namespace gpups::trainer {

// Numbers of two words or nodes.
struct HeldOutPair {
  std::uint32_t first, second;
  bool operator==(HeldOutPair const&) const = default;
};

// Returns the share of comparisons in which the rows of a pair have a larger cosine than those of its first member and
// another one that is drawn, `auc`; equal cosines count half, and a row of zeros has the cosine 0. Each pair is
// compared with 16 others. keys: of all words or nodes, by number; draw: draws their numbers. The result is the
// same for every number of ranks. Blocks. Collective.
Metrics wait_compare_pairs(Stream& stream, Store& store, std::span<Key const> keys, std::span<HeldOutPair const> pairs,
                           AliasTable const& draw, std::uint64_t seed);

// Returns the bytes that it needs on a rank, for rows of this stride.
std::uint64_t pair_bytes(std::size_t stride);

}  // namespace gpups::trainer
