// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/words/word_groups.hpp"

#include <algorithm>
#include <cmath>

namespace gpups::trainer {
namespace {

// The purposes of random bits.
constexpr std::uint64_t kPositions = 1, kNegatives = 2;

static_assert(Corpus::kLineEnd == ListedWord::kLineEnd);

std::vector<double> to_doubles(std::vector<std::uint64_t> const& counts) { return {counts.begin(), counts.end()}; }

}  // namespace

WordSampler::WordSampler(Corpus const& corpus, SkipGramOptions const& options)
    : corpus_(corpus), options_(options), maker_(corpus.words.keys(), to_doubles(corpus.counts), options) {
  for (std::uint64_t const count : corpus.counts) {
    double const share = static_cast<double>(count) / static_cast<double>(corpus.total);
    double const ratio = options.subsample / share;
    double const kept = options.subsample > 0 ? std::min(1.0, std::sqrt(ratio) + ratio) : 1;
    kept_below_.push_back(static_cast<std::uint64_t>(kept * 0x1p32));
  }
}

SkipGramGroups WordSampler::groups(Batch const& batch) const {
  SkipGramGroups groups;
  std::uint64_t const positions = corpus_.positions.size();
  for (std::uint64_t const group : batch.samples) {
    add_group(batch.epoch, group * kGroupPositions, std::min((group + 1) * kGroupPositions, positions), groups);
  }
  return groups;
}

// Adds the group of positions first .. end - 1, and of the positions before and after them that are in their windows.
void WordSampler::add_group(std::int64_t epoch, std::uint64_t first, std::uint64_t end, SkipGramGroups& groups) const {
  RandomBits const random(options_.seed, kPositions, epoch);
  auto const is_line_end = [&](std::uint64_t position) { return corpus_.positions[position] == Corpus::kLineEnd; };
  auto const is_kept = [&](std::uint64_t position) {
    return random(position) >> 32 < kept_below_[corpus_.positions[position]];
  };
  auto const listed_at = [&](std::uint64_t position) {
    auto const reach = static_cast<std::uint32_t>((random(position) & 0xFFFFFFFF) * options_.window >> 32);
    return ListedWord{corpus_.positions[position], 1 + reach};
  };

  // The positions of the group and around it, in order.
  std::vector<ListedWord> listed;
  for (std::uint64_t position = first; position > 0 && listed.size() < options_.window; --position) {
    if (is_line_end(position - 1)) break;
    if (is_kept(position - 1)) listed.push_back(listed_at(position - 1));
  }
  std::reverse(listed.begin(), listed.end());
  std::size_t const begin_words = listed.size();
  for (std::uint64_t position = first; position < end; ++position) {
    if (is_line_end(position) || is_kept(position)) listed.push_back(listed_at(position));
  }
  std::size_t const end_words = listed.size();
  for (std::uint64_t position = end; position < corpus_.positions.size() && listed.size() < end_words + options_.window;
       ++position) {
    if (is_line_end(position) || is_line_end(end - 1)) break;
    if (is_kept(position)) listed.push_back(listed_at(position));
  }
  maker_.add(listed, begin_words, end_words, RandomBits(options_.seed, kNegatives, epoch, first), groups);
}

}  // namespace gpups::trainer
