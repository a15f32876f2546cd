// SPDX-License-Identifier: Apache-2.0
// The groups of batches of a text. A sample is a group: 32 positions of the text.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/step/batch_sampler.hpp"
#include "trainer/tasks/words/corpus.hpp"
#include "trainer/tasks/words/skip_gram_groups.hpp"

namespace gpups::trainer {

// Returns the number of groups of a text.
constexpr std::uint64_t groups_of(std::uint64_t positions) {
  return (positions + kGroupPositions - 1) / kGroupPositions;
}

// Finds the groups of batches. Any thread.
class WordSampler {
 public:
  // `corpus` must outlive this object.
  WordSampler(Corpus const& corpus, SkipGramOptions const& options);

  // The result depends on corpus, options and batch only. In an epoch, a position of a frequent word is dropped with
  // the probability of word2vec, and its neighbours then have it in no window. A word's window reaches to 1 .. window
  // positions that are not dropped, on either side, within its line.
  SkipGramGroups groups(Batch const& batch) const;

  // Draws words in proportion to counts^.75.
  AliasTable const& negatives() const { return maker_.negatives(); }

 private:
  void add_group(std::int64_t epoch, std::uint64_t first, std::uint64_t end, SkipGramGroups& groups) const;

  Corpus const& corpus_;
  SkipGramOptions options_;
  std::vector<std::uint64_t> kept_below_;  // of each word: it is kept if a random number below 2^32 is below this one
  GroupMaker maker_;
};

}  // namespace gpups::trainer
