// SPDX-License-Identifier: Apache-2.0
#include "trainer/words/word_groups.hpp"

#include <algorithm>
#include <cmath>

#include "trainer/random.hpp"

namespace gpups::trainer {
namespace {

// The purposes of random bits.
constexpr std::uint64_t kPositions = 1, kNegatives = 2;

std::vector<double> negative_weights(Corpus const& corpus) {
  constexpr double kPower = 0.75;  // of counts (Mikolov et al. 2013)
  std::vector<double> weights;
  for (std::uint64_t const count : corpus.counts) weights.push_back(std::pow(static_cast<double>(count), kPower));
  return weights;
}

}  // namespace

WordSampler::WordSampler(Corpus const& corpus, SkipGramOptions const& options)
    : corpus_(corpus), options_(options), negatives_(negative_weights(corpus)) {
  for (std::uint64_t const count : corpus.counts) {
    double const share = static_cast<double>(count) / static_cast<double>(corpus.total);
    double const ratio = options.subsample / share;
    double const kept = options.subsample > 0 ? std::min(1.0, std::sqrt(ratio) + ratio) : 1;
    kept_below_.push_back(static_cast<std::uint64_t>(kept * 0x1p32));
  }
}

WordGroups WordSampler::groups(Batch const& batch) const {
  WordGroups groups;
  std::uint64_t const positions = corpus_.positions.size();
  for (std::uint64_t const group : batch.samples) {
    add_group(batch.epoch, group * kGroupPositions, std::min((group + 1) * kGroupPositions, positions), groups);
  }
  return groups;
}

// Adds the group of positions first .. end - 1, and of the positions before and after them that are in their windows.
void WordSampler::add_group(std::int64_t epoch, std::uint64_t first, std::uint64_t end, WordGroups& groups) const {
  RandomBits const random(options_.seed, kPositions, epoch);
  auto const is_line_end = [&](std::uint64_t position) { return corpus_.positions[position] == Corpus::kLineEnd; };
  auto const is_kept = [&](std::uint64_t position) {
    return random(position) >> 32 < kept_below_[corpus_.positions[position]];
  };
  std::uint32_t const reach = options_.window;

  // The positions of the group, in order. Lines are separated by kLineEnd, which is no context.
  std::vector<std::uint64_t> listed;
  for (std::uint64_t position = first; position > 0 && listed.size() < reach; --position) {
    if (is_line_end(position - 1)) break;
    if (is_kept(position - 1)) listed.push_back(position - 1);
  }
  std::reverse(listed.begin(), listed.end());
  std::size_t const begin_words = listed.size();
  for (std::uint64_t position = first; position < end; ++position) {
    if (is_line_end(position) || is_kept(position)) listed.push_back(position);
  }
  std::size_t const end_words = listed.size();
  for (std::uint64_t position = end; position < corpus_.positions.size() && listed.size() < end_words + reach;
       ++position) {
    if (is_line_end(position) || is_line_end(end - 1)) break;
    if (is_kept(position)) listed.push_back(position);
  }

  std::vector<std::uint32_t> context_of(listed.size());  // the number of each listed position among the contexts
  std::uint32_t contexts = 0;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    context_of[i] = contexts;
    if (!is_line_end(listed[i])) ++contexts;
  }
  std::size_t const words_before = groups.words.size();
  for (std::size_t i = begin_words; i < end_words; ++i) {
    if (is_line_end(listed[i])) continue;
    auto const own_reach = 1 + static_cast<std::uint32_t>((random(listed[i]) & 0xFFFFFFFF) * reach >> 32);
    std::size_t low = i, high = i + 1;
    while (low > 0 && i - low < own_reach && !is_line_end(listed[low - 1])) --low;
    while (high < listed.size() && high - i <= own_reach && !is_line_end(listed[high])) ++high;
    if (high - low == 1) continue;  // no neighbours
    groups.words.push_back(corpus_.words.keys()[corpus_.positions[listed[i]]]);
    groups.windows.push_back({context_of[low], context_of[i], context_of[i] + static_cast<std::uint32_t>(high - i)});
  }
  if (groups.words.size() == words_before) return;

  // No context is beyond the windows: a row that nothing predicts would be updated by momentum or l2.
  std::uint32_t low = contexts, high = 0;
  for (std::size_t w = words_before; w < groups.windows.size(); ++w) {
    low = std::min(low, groups.windows[w].first);
    high = std::max(high, groups.windows[w].end);
  }
  for (std::size_t w = words_before; w < groups.windows.size(); ++w) {
    kernels::ContextWindow& window = groups.windows[w];
    window = {window.first - low, window.own - low, window.end - low};
  }
  for (std::size_t i = 0; i < listed.size(); ++i) {
    if (is_line_end(listed[i]) || context_of[i] < low || context_of[i] >= high) continue;
    groups.contexts.push_back(corpus_.words.keys()[corpus_.positions[listed[i]]]);
  }
  RandomBits const of_negatives(options_.seed, kNegatives, epoch, first);
  for (std::uint32_t k = 0; k < options_.negatives; ++k) {
    groups.contexts.push_back(corpus_.words.keys()[negatives_(of_negatives(k))]);
  }
  groups.word_offsets.push_back(static_cast<std::uint32_t>(groups.words.size()));
  groups.context_offsets.push_back(static_cast<std::uint32_t>(groups.contexts.size()));
}

}  // namespace gpups::trainer
