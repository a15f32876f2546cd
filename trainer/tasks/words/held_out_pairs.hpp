// SPDX-License-Identifier: Apache-2.0
// Pairs of words or nodes that were held out of training, and how well vectors tell them from pairs by chance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "trainer/step/task.hpp"
#include "trainer/tasks/words/skip_gram_groups.hpp"

namespace gpups::trainer {

// Numbers of two words or nodes.
struct HeldOutPair {
  std::uint32_t first, second;
  bool operator==(HeldOutPair const&) const = default;
};

// The words or nodes of pairs, and what pairs are compared with.
struct PairComparison {
  std::span<Key const> keys;  // of all words or nodes, by number
  AliasTable const& draw;     // draws their numbers
  // Whether two of them may be a pair too, so that they are no pair by chance; null: none are.
  std::function<bool(std::uint32_t, std::uint32_t)> may_be_pair;
  std::uint64_t seed;
};

// Returns the share of comparisons in which the rows of a pair have a larger cosine than those of its first member and
// another one that is drawn, `auc`; equal cosines count half, and a row of zeros has the cosine 0. Each pair is
// compared with 16 others, or fewer if few can be drawn; without any, there is no `auc`. The result is the same for
// every number of ranks. Blocks. Collective.
Metrics wait_compare_pairs(Stream& stream, Store& store, std::span<HeldOutPair const> pairs,
                           PairComparison const& with);

// Returns the bytes that it needs on a rank, for rows of this stride: on the device, and again on the host.
std::uint64_t pair_bytes(std::size_t stride);

}  // namespace gpups::trainer
