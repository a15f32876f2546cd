// SPDX-License-Identifier: Apache-2.0
// The alias table draws with the weights. The groups of a batch have each word once, the windows of word2vec, and
// negatives, and do not depend on the number of ranks.
#include "trainer/tasks/words/word_groups.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "trainer/base/random.hpp"

namespace gpups::trainer::word_groups_test {
namespace {

TEST(AliasTable, DrawsInProportionToWeights) {
  constexpr std::uint64_t kDraws = 200'000;
  for (std::vector<double> const& weights : std::vector<std::vector<double>>{
           {3}, {1, 1}, {0, 1, 0, 9}, {5, 1, 1, 1, 1, 1}, {0.1, 0.2, 0.3, 1000}, {7, 6, 5, 4, 3, 2, 1, 0.5, 0}}) {
    AliasTable const draw(weights);
    double const sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<double> shares(weights.size());
    for (std::uint64_t i = 0; i < kDraws; ++i) shares.at(draw(random_bits(3, i))) += 1.0 / kDraws;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      double const share = weights[k] / sum;
      EXPECT_NEAR(shares[k], share, 5 * std::sqrt(share / kDraws)) << k << " of " << weights.size();
    }
  }
}

void add_line(Corpus& corpus, std::vector<std::uint32_t> const& line) {
  for (std::uint32_t const word : line) {
    while (corpus.words.size() <= word) corpus.words.add(fmt::format("w{}", corpus.words.size()));
    corpus.counts.resize(corpus.words.size());
    ++corpus.counts[word];
    ++corpus.total;
    corpus.positions.push_back(word);
  }
  corpus.positions.push_back(Corpus::kLineEnd);
}

// Builds a text in which each word occurs once.
Corpus distinct_words(std::vector<std::uint32_t> const& line_lengths) {
  Corpus corpus;
  for (std::uint32_t const length : line_lengths) {
    std::vector<std::uint32_t> line(length);
    std::iota(line.begin(), line.end(), static_cast<std::uint32_t>(corpus.words.size()));
    add_line(corpus, line);
  }
  return corpus;
}

// A batch of all groups of a text.
Batch batch_of(Corpus const& corpus, std::int64_t epoch = 0) {
  Batch batch{.epoch = epoch, .samples = std::vector<std::uint64_t>(groups_of(corpus.positions.size()))};
  std::iota(batch.samples.begin(), batch.samples.end(), 0U);
  return batch;
}

// By word: the number of positions to the left and to the right that are in its window.
using Reaches = std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>>;
// The pairs of words and contexts in groups, the windows, and the negatives, as numbers of words.
struct Pairs {
  std::multiset<std::pair<std::uint32_t, std::uint32_t>> words;
  Reaches reaches;
  std::vector<std::uint32_t> negatives;
};
Pairs pairs_of(Corpus const& corpus, SkipGramGroups const& groups, std::uint32_t negatives) {
  std::map<Key, std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < corpus.words.size(); ++i) numbers[corpus.words.keys()[i]] = i;
  Pairs pairs;
  EXPECT_EQ(groups.words.size(), groups.word_offsets.back());
  EXPECT_EQ(groups.contexts.size(), groups.context_offsets.back());
  for (std::size_t g = 0; g + 1 < groups.word_offsets.size(); ++g) {
    std::uint32_t const first = groups.context_offsets[g], end = groups.context_offsets[g + 1];
    for (std::uint32_t w = groups.word_offsets[g]; w < groups.word_offsets[g + 1]; ++w) {
      kernels::ContextWindow const window = groups.windows.at(w);
      EXPECT_LE(first + window.end + negatives, end);
      EXPECT_EQ(groups.contexts[first + window.own], groups.words[w]);
      std::uint32_t const word = numbers.at(groups.words[w]);
      pairs.reaches[word] = {window.own - window.first, window.end - 1 - window.own};
      for (std::uint32_t c = first + window.first; c < first + window.end; ++c) {
        if (c != first + window.own) pairs.words.emplace(word, numbers.at(groups.contexts[c]));
      }
    }
    for (std::uint32_t c = end - negatives; c < end; ++c) pairs.negatives.push_back(numbers.at(groups.contexts[c]));
  }
  return pairs;
}

TEST(WordGroups, HaveEachWordWithNeighboursOnce) {
  Corpus const corpus = distinct_words({1, 40, 2, 1, 1, 70, 3, 1});
  WordSampler const sampler(corpus, {.window = 5, .negatives = 3, .shared_negatives = 3, .subsample = 0});
  std::vector<Key> want;
  for (std::uint32_t i = 0; i < corpus.words.size(); ++i) {
    if (i != 0 && i != 43 && i != 44 && i != 118) want.push_back(corpus.words.keys()[i]);  // alone in a line
  }
  EXPECT_EQ(sampler.groups(batch_of(corpus)).words, want);
  EXPECT_TRUE(sampler.groups({}).contexts.empty());
}

// A line has several groups, so contexts may be outside of the group.
TEST(WordGroups, WindowsReachAcrossGroupsAndNotAcrossLines) {
  constexpr std::uint32_t kWindow = 6, kLine = 150;
  Corpus const corpus = distinct_words({kLine, kLine, kLine, kLine});
  WordSampler const sampler(corpus, {.window = kWindow, .negatives = 3, .shared_negatives = 3, .subsample = 0});
  Pairs const whole = pairs_of(corpus, sampler.groups(batch_of(corpus)), 3);
  auto want = decltype(whole.words){};
  std::map<std::uint32_t, int> sizes;  // how many windows have each size
  for (auto const& [word, sides] : whole.reaches) {
    auto const [left, right] = sides;
    auto const reach = std::max(left, right);
    EXPECT_EQ(left, std::min(reach, word % kLine));
    EXPECT_EQ(right, std::min(reach, kLine - 1 - word % kLine));
    for (std::uint32_t other = word - left; other <= word + right; ++other) {
      if (other != word) want.emplace(word, other);
    }
    ++sizes[reach];
  }
  EXPECT_EQ(whole.words, want);
  for (std::uint32_t reach = 1; reach <= kWindow; ++reach) EXPECT_NEAR(sizes[reach], 4.0 * kLine / kWindow, 35);
  EXPECT_EQ(sizes.size(), kWindow);
}

TEST(WordGroups, NegativesAreDrawnByCounts) {
  std::vector<std::uint32_t> line(2000, 0);
  std::fill_n(line.begin(), 500, 1);
  std::fill_n(line.begin(), 100, 2);
  Corpus corpus;
  add_line(corpus, line);
  WordSampler const sampler(corpus, {.window = 1, .negatives = 400, .shared_negatives = 400, .subsample = 0});
  SkipGramGroups const groups = sampler.groups(batch_of(corpus)), later = sampler.groups(batch_of(corpus, 1));
  std::vector<std::uint32_t> const negatives = pairs_of(corpus, groups, 400).negatives;
  ASSERT_EQ(negatives.size(), 63U * 400);
  EXPECT_NE(pairs_of(corpus, later, 400).negatives, negatives);
  double const sum = std::pow(1500, 0.75) + std::pow(400, 0.75) + std::pow(100, 0.75);
  for (std::uint32_t word = 0; word < 3; ++word) {
    auto const drawn = static_cast<double>(std::count(negatives.begin(), negatives.end(), word));
    EXPECT_NEAR(drawn / (63 * 400), std::pow(corpus.counts[word], 0.75) / sum, 0.015) << word;
  }
}

TEST(WordGroups, SmallGroupDrawsNoMoreNegativesThanItsWordsWeigh) {
  Corpus const corpus = distinct_words({2, 64});
  for (std::uint32_t const shared : {128, 43, 4}) {
    SkipGramOptions const options{.window = 1, .negatives = 4, .shared_negatives = shared, .subsample = 0};
    SkipGramGroups const groups = WordSampler(corpus, options).groups(batch_of(corpus));
    for (std::size_t g = 0; g + 1 < groups.word_offsets.size(); ++g) {
      std::uint32_t const words = groups.word_offsets[g + 1] - groups.word_offsets[g];
      std::uint32_t const positions = groups.windows[groups.word_offsets[g + 1] - 1].end;
      std::uint32_t const drawn = groups.context_offsets[g + 1] - groups.context_offsets[g] - positions;
      EXPECT_EQ(drawn, std::min(4 * words, shared)) << g;
    }
  }
}

TEST(WordGroups, DoNotDependOnRanks) {
  Corpus const corpus = distinct_words({100, 3, 1, 57, 400});
  WordSampler const sampler(corpus, {.window = 4, .negatives = 7, .shared_negatives = 7, .subsample = 2e-4});
  for (Clock const clock : {Clock{0}, Clock{3}, Clock{20}}) {
    auto const join = [&](std::uint32_t ranks) {
      std::vector<Key> keys;
      Reaches reaches;
      for (std::uint32_t r = 0; r < ranks; ++r) {
        BatchSampler batches(groups_of(corpus.positions.size()), {.batch_size = 8, .rank = Rank{r}, .ranks = ranks});
        SkipGramGroups const mine = sampler.groups(batches.make(clock));
        keys.insert(keys.end(), mine.contexts.begin(), mine.contexts.end());
        reaches.merge(pairs_of(corpus, mine, 7).reaches);
      }
      return std::pair(keys, reaches);
    };
    auto const alone = join(1);
    EXPECT_GT(alone.second.size(), 10U);
    for (std::uint32_t ranks : {2, 3}) EXPECT_EQ(join(ranks), alone);
  }
}

// Half of the text is word 0, a tenth is word 1, and every other word occurs once.
TEST(WordGroups, SubsamplingDropsFrequentWords) {
  constexpr std::uint32_t kPositions = 20'000;
  std::vector<std::uint32_t> line;
  for (std::uint32_t i = 0; i < kPositions; ++i) line.push_back(i % 2 == 0 ? 0 : i % 10 == 1 ? 1 : 2 + i);
  Corpus corpus;
  add_line(corpus, line);
  WordSampler const sampler(corpus, {.window = 4, .negatives = 2, .shared_negatives = 2, .subsample = 0.02});
  SkipGramGroups const first = sampler.groups(batch_of(corpus));
  EXPECT_NE(sampler.groups(batch_of(corpus, 1)).words, first.words);
  for (std::uint32_t word : {0, 1}) {
    auto const kept = std::count(first.words.begin(), first.words.end(), corpus.words.keys()[word]);
    double const share = word == 0 ? 0.5 : 0.1, ratio = 0.02 / share;
    EXPECT_NEAR(static_cast<double>(kept) / (share * kPositions), std::sqrt(ratio) + ratio, 0.03) << word;
  }
  // All other words are kept, and windows reach over dropped positions.
  Pairs const pairs = pairs_of(corpus, first, 2);
  for (std::uint32_t i = 20; i + 20 < kPositions; ++i) {
    if (line[i] < 2) continue;
    ASSERT_EQ(pairs.reaches.at(line[i]).first, pairs.reaches.at(line[i]).second) << i;
  }
}

}  // namespace
}  // namespace gpups::trainer::word_groups_test
