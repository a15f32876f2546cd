// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/words/skip_gram_groups.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gpups::trainer {

AliasTable::AliasTable(std::span<double const> weights) : slots_(weights.size()) {
  double const sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  auto const slots = static_cast<double>(weights.size());
  std::vector<double> left(weights.size());  // what each number still needs, in slots
  std::vector<std::uint32_t> small, large;   // numbers that need less than a slot, and the others
  for (std::uint32_t i = 0; i < weights.size(); ++i) {
    left[i] = weights[i] / sum * slots;
    (left[i] < 1 ? small : large).push_back(i);
  }
  while (!small.empty() && !large.empty()) {
    std::uint32_t const less = small.back(), more = large.back();
    small.pop_back();
    slots_[less] = {static_cast<std::uint32_t>(std::min(left[less] * 0x1p32, 0x1p32 - 1)), more};
    left[more] -= 1 - left[less];
    if (left[more] >= 1) continue;
    large.pop_back();
    small.push_back(more);
  }
  for (auto const* rest : {&small, &large}) {
    for (std::uint32_t const i : *rest) slots_[i] = {0xFFFFFFFF, i};
  }
}

namespace {

std::vector<double> negative_weights(std::span<double const> counts) {
  constexpr double kPower = 0.75;
  std::vector<double> weights;
  for (double const count : counts) weights.push_back(std::pow(count, kPower));
  return weights;
}

}  // namespace

GroupMaker::GroupMaker(std::span<Key const> keys, std::span<double const> counts, SkipGramOptions const& options)
    : keys_(keys),
      draw_(negative_weights(counts)),
      negatives_(options.negatives),
      shared_negatives_(options.shared_negatives) {}

void GroupMaker::add(std::span<ListedWord const> listed, std::size_t begin, std::size_t end,
                     RandomBits const& of_negatives, SkipGramGroups& groups) const {
  std::vector<std::uint32_t> context_of(listed.size());  // the number of each listed word among the contexts
  std::uint32_t contexts = 0;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    context_of[i] = contexts;
    if (!listed[i].is_end()) ++contexts;
  }
  std::size_t const words_before = groups.words.size();
  for (std::size_t i = begin; i < end; ++i) {
    auto const [word, reach] = listed[i];
    if (listed[i].is_end()) continue;
    std::size_t low = i, high = i + 1;
    while (low > 0 && i - low < reach && !listed[low - 1].is_end()) --low;
    while (high < listed.size() && high - i <= reach && !listed[high].is_end()) ++high;
    if (high - low == 1) continue;
    groups.words.push_back(keys_[word]);
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
    if (listed[i].is_end() || context_of[i] < low || context_of[i] >= high) continue;
    groups.contexts.push_back(keys_[listed[i].word]);
  }
  auto const words = static_cast<std::uint32_t>(groups.words.size() - words_before);
  std::uint32_t const drawn = kernels::negatives_of_group(negatives_, shared_negatives_, words);
  for (std::uint32_t k = 0; k < drawn; ++k) groups.contexts.push_back(keys_[draw_(of_negatives(k))]);
  groups.word_offsets.push_back(static_cast<std::uint32_t>(groups.words.size()));
  groups.context_offsets.push_back(static_cast<std::uint32_t>(groups.contexts.size()));
}

}  // namespace gpups::trainer
