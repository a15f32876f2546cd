// SPDX-License-Identifier: Apache-2.0
// Holds parts of a text out of training, as pairs of words near each other.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/base/random.hpp"
#include "trainer/tasks/words/corpus.hpp"
#include "trainer/tasks/words/held_out_pairs.hpp"

namespace gpups::trainer {

// Removes a random share of the blocks of 32 positions from a text. Returns a pair for each of their positions: its
// word, and one of up to 5 words later in the block and the line. No window reaches over a gap. The counts of words
// stay those of the whole text. seed: of the split.
std::vector<HeldOutPair> hold_out_blocks(Corpus& corpus, double share, RandomBits const& seed);

}  // namespace gpups::trainer
