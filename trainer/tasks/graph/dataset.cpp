// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/graph/dataset.hpp"

#include <fmt/format.h>

#include <xxhash.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/base/random.hpp"
#include "trainer/tasks/graph/reciprocal.hpp"

namespace gpups::trainer {

void Dataset::add_train(std::string_view subject, std::string_view relation, std::string_view object) {
  std::uint32_t const s = entities.add(subject);
  train.push_back({s, relations.add(relation), entities.add(object)});
  seen_entities = entities.size();
  seen_relations = relations.size();
}

void Dataset::add_held_out(std::vector<Triple>& split, std::string_view subject, std::string_view relation,
                           std::string_view object) {
  std::uint32_t const s = entities.add(subject);
  split.push_back({s, relations.add(relation), entities.add(object)});
}

std::size_t Dataset::count_unseen(std::span<Triple const> triples) const {
  auto const unseen = [this](Triple const& triple) { return is_unseen(triple); };
  return static_cast<std::size_t>(std::count_if(triples.begin(), triples.end(), unseen));
}

Vocabulary Dataset::vocabulary() const {
  std::vector<Key> const& all = relations.keys();
  return {entities.keys(), {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(seen_relations)}};
}

std::vector<Triple> const& Dataset::split(std::string_view name) const {
  GPUPS_ASSERT(name == "train" || name == "valid" || name == "test");
  return name == "train" ? train : name == "valid" ? valid : test;
}

std::uint64_t Dataset::digest() const {
  static_assert(sizeof(Triple) == 12);
  std::uint64_t hash = 0;
  auto const add = [&hash](auto const& v) { hash = XXH3_64bits_withSeed(v.data(), v.size() * sizeof(v[0]), hash); };
  add(entities.keys());
  add(relations.keys());
  add(train);
  add(valid);
  add(test);
  return hash;
}

QuerySet::QuerySet(Dataset const& data) {
  std::vector<Triple> facts;
  facts.reserve(2 * data.train.size());
  for (auto const& [subject, relation, object] : data.train) {
    facts.push_back({subject, relation, object});
    facts.push_back({object, inverse_relation(relation, data.seen_relations), subject});
  }
  auto const order = [](Triple const& fact) { return std::tie(fact.subject, fact.relation, fact.object); };
  std::ranges::sort(facts, {}, order);
  auto const are_equal = [&](Triple const& a, Triple const& b) { return order(a) == order(b); };
  facts.erase(std::unique(facts.begin(), facts.end(), are_equal), facts.end());
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

std::string with_names(std::string message, Dataset const& data) {
  constexpr std::string_view kBefore = "key ";
  for (auto const& [table, names] :
       {std::pair{" in table 'entities'", &data.entities}, std::pair{" in table 'relations'", &data.relations}}) {
    std::size_t const end = message.find(table);
    if (end == std::string::npos) continue;
    std::size_t first = end;
    while (first > 0 && message[first - 1] >= '0' && message[first - 1] <= '9') --first;
    if (first == end || !std::string_view(message).substr(0, first).ends_with(kBefore)) continue;
    auto const& keys = names->keys();
    std::string const digits = message.substr(first, end - first);
    auto const key = std::find_if(keys.begin(), keys.end(), [&](Key k) { return fmt::to_string(number(k)) == digits; });
    if (key == keys.end()) continue;
    auto const name = names->name(static_cast<std::uint32_t>(key - keys.begin()));
    return message.insert(end, fmt::format(" ('{}')", name));
  }
  return message;
}

}  // namespace gpups::trainer
