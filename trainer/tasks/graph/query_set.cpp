// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/graph/query_set.hpp"

#include <algorithm>
#include <tuple>

#include "trainer/base/random.hpp"
#include "trainer/tasks/graph/reciprocal.hpp"

namespace gpups::trainer {

QuerySet::QuerySet(Dataset const& data) {
  std::vector<Triple> facts;
  facts.reserve(2 * data.train.size());
  for (auto const& [subject, relation, object] : data.train) {
    facts.push_back({subject, relation, object});
    facts.push_back({object, inverse_relation(relation, data.seen_relations), subject});
  }
  auto const order = [](Triple const& fact) { return std::tie(fact.subject, fact.relation, fact.object); };
  std::ranges::sort(facts, {}, order);
  auto const repeated = std::ranges::unique(facts, {}, order);
  facts.erase(repeated.begin(), repeated.end());
  answers_.reserve(facts.size());
  for (Triple const& fact : facts) {
    Query const query{fact.subject, fact.relation};
    if (queries_.empty() || queries_.back() != query) {
      queries_.push_back(query);
      offsets_.push_back(answers_.size());
    }
    answers_.push_back(fact.object);
    offsets_.back() = answers_.size();
  }
  queries_.shrink_to_fit();
  offsets_.shrink_to_fit();
}

void QuerySet::add_to(TripleBatch& batch, std::size_t query, std::uint64_t bits) const {
  auto const all = answers(query);
  batch.triples.push_back({entity(query), relation(query), all[below(all.size(), bits)]});
  if (batch.answer_offsets.empty()) batch.answer_offsets.push_back(0);
  batch.answers.insert(batch.answers.end(), all.begin(), all.end());
  batch.answer_offsets.push_back(static_cast<std::uint32_t>(batch.answers.size()));
}

}  // namespace gpups::trainer
