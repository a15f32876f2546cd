// SPDX-License-Identifier: Apache-2.0
// The groups of a batch, for kernels::SkipGram: which words are trained, their windows, and negatives. A sample is a
// group: 32 positions of the text.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/words/skip_gram.hpp"
#include "trainer/batch_sampler.hpp"
#include "trainer/words/alias_table.hpp"
#include "trainer/words/corpus.hpp"

namespace gpups::trainer {

inline constexpr std::uint64_t kGroupPositions = 32;  // the last group of a text may have fewer
// Returns the number of groups of a text.
constexpr std::uint64_t groups_of(std::uint64_t positions) {
  return (positions + kGroupPositions - 1) / kGroupPositions;
}

// See docs/words.md.
struct SkipGramOptions {
  std::uint32_t window = 5;
  std::uint32_t negatives = 15;  // of a group
  double subsample = 1e-3;       // 0: all positions are trained
  std::uint64_t seed = 1;
};

// The groups of one rank's batch, on the host; see kernels::SkipGram.
struct WordGroups {
  std::vector<Key> words, contexts;
  std::vector<kernels::ContextWindow> windows;
  std::vector<std::uint32_t> word_offsets{0}, context_offsets{0};
};

// Finds the groups of batches. Any thread.
class WordSampler {
 public:
  // `corpus` must outlive this object.
  WordSampler(Corpus const& corpus, SkipGramOptions const& options);

  // The result depends on corpus, options and batch only. In an epoch, a position of a frequent word is dropped with
  // the probability of word2vec, and its neighbours then have it in no window. A word's window reaches to 1 .. window
  // positions that are not dropped, on either side, within its line.
  WordGroups groups(Batch const& batch) const;

 private:
  void add_group(std::int64_t epoch, std::uint64_t first, std::uint64_t end, WordGroups& groups) const;

  Corpus const& corpus_;
  SkipGramOptions options_;
  std::vector<std::uint64_t> kept_below_;  // of each word: it is kept if a random number below 2^32 is below this one
  AliasTable negatives_;                   // words in proportion to counts^.75
};

}  // namespace gpups::trainer
