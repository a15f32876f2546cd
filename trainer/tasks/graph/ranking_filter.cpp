// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/graph/ranking_filter.hpp"

#include <algorithm>
#include <utility>

namespace gpups::trainer {
namespace {

std::uint64_t question(std::uint32_t entity, std::uint32_t relation) { return std::uint64_t{entity} << 32 | relation; }

}  // namespace

RankingFilter::RankingFilter(std::initializer_list<std::span<Triple const>> splits, bool objects) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> facts;
  for (auto const& split : splits) {
    for (Triple const& t : split) {
      facts.emplace_back(question(objects ? t.subject : t.object, t.relation), objects ? t.object : t.subject);
    }
  }
  std::sort(facts.begin(), facts.end());
  facts.erase(std::unique(facts.begin(), facts.end()), facts.end());
  for (auto const& [question, answer] : facts) {
    if (questions_.empty() || questions_.back() != question) {
      questions_.push_back(question);
      offsets_.push_back(static_cast<std::uint32_t>(answers_.size()));
    }
    answers_.push_back(answer);
  }
  offsets_.push_back(static_cast<std::uint32_t>(answers_.size()));
}

std::span<std::uint32_t const> RankingFilter::of(std::uint32_t entity, std::uint32_t relation) const {
  auto const found = std::lower_bound(questions_.begin(), questions_.end(), question(entity, relation));
  if (found == questions_.end() || *found != question(entity, relation)) return {};
  auto const i = static_cast<std::size_t>(found - questions_.begin());
  return std::span(answers_).subspan(offsets_[i], offsets_[i + 1] - offsets_[i]);
}

}  // namespace gpups::trainer
