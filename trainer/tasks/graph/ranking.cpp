// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/graph/ranking.hpp"

#include <fmt/format.h>

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

namespace {

constexpr double kUnit = 4294967296.0;

}  // namespace

RankingSums::RankingSums(std::vector<std::int64_t> hits) : hits_(std::move(hits)), values_(3 + hits_.size()) {}

void RankingSums::add(std::uint64_t better, std::uint64_t equal) {
  std::uint64_t const twice = 2 + 2 * better + equal;  // twice the rank
  values_[0] += 1;
  values_[1] += static_cast<std::int64_t>(2 * kUnit / static_cast<double>(twice));
  values_[2] += static_cast<std::int64_t>(twice);
  for (std::size_t i = 0; i < hits_.size(); ++i) {
    values_[3 + i] += twice <= 2 * static_cast<std::uint64_t>(hits_[i]) ? 1 : 0;
  }
}

RankingMetrics RankingSums::metrics() const {
  auto const count = static_cast<double>(std::max<std::int64_t>(values_[0], 1));
  RankingMetrics m{.ranked = values_[0],
                   .triples = 0,
                   .unseen = 0,
                   .mrr = static_cast<double>(values_[1]) / kUnit / count,
                   .mean_rank = static_cast<double>(values_[2]) / 2 / count,
                   .hits = {}};
  for (std::size_t i = 0; i < hits_.size(); ++i) {
    m.hits.emplace_back(hits_[i], static_cast<double>(values_[3 + i]) / count);
  }
  return m;
}

nlohmann::json to_json(RankingMetrics const& m) {
  nlohmann::json json{
      {"ranked", m.ranked}, {"triples", m.triples}, {"unseen", m.unseen}, {"mrr", m.mrr}, {"mean_rank", m.mean_rank}};
  for (auto const& [k, share] : m.hits) json[fmt::format("hits@{}", k)] = share;
  return json;
}

std::string to_text(RankingMetrics const& m) {
  std::string text = fmt::format("mrr {:.4f}", m.mrr);
  for (auto const& [k, share] : m.hits) text += fmt::format("  hits@{} {:.4f}", k, share);
  auto const ranked = static_cast<std::size_t>(m.ranked) / 2;
  if (ranked < m.triples) text += fmt::format("  ({} of {} triples)", ranked, m.triples);
  return text;
}

}  // namespace gpups::trainer
