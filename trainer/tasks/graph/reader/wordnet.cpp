// SPDX-License-Identifier: Apache-2.0
// Makes a knowledge graph from a WordNet database. Its entities are synsets. Of two inverse relations it has only one.
#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/tasks/graph/reader.hpp"
#include "trainer/tasks/graph/reader/wordnet_database.hpp"

namespace gpups::trainer {
namespace {

// The relation of a pointer's symbol. reversed: the target of the pointer is the subject.
struct RelationOf {
  std::string_view symbol, relation;
  bool reversed;
};
constexpr RelationOf kRelations[] = {
    {"@", "hypernym", false},          {"~", "hypernym", true},         {"@i", "instance_hypernym", false},
    {"~i", "instance_hypernym", true}, {"%m", "member_meronym", false}, {"#m", "member_meronym", true},
    {"%p", "part_meronym", false},     {"#p", "part_meronym", true},    {"%s", "substance_meronym", false},
    {"#s", "substance_meronym", true}, {";c", "topic_domain", false},   {"-c", "topic_domain", true},
    {";r", "region_domain", false},    {"-r", "region_domain", true},   {";u", "usage_domain", false},
    {"-u", "usage_domain", true},      {"&", "similar_to", false},      {"^", "also_see", false},
    {"$", "verb_group", false},        {"*", "entailment", false},      {">", "cause", false},
};
constexpr std::string_view kAttribute =
    "attribute";  // symbol "=", which the database has in both directions: here from nouns to adjectives

// A triple, with the indices of synsets.
struct Fact {
  std::uint32_t subject, object;
  std::string_view relation;
  auto order() const { return std::tie(subject, object, relation); }
};

bool is_noun(Synset const& synset) {
  std::size_t const dot = synset.name.rfind('.');
  return synset.name[dot - 1] == 'n';
}

std::vector<Fact> facts_of(std::vector<Synset> const& synsets) {
  std::vector<Fact> facts;
  for (std::uint32_t i = 0; i < synsets.size(); ++i) {
    for (SynsetPointer const& pointer : synsets[i].pointers) {
      if (pointer.symbol == "=") {
        bool const from_noun = is_noun(synsets[i]);
        facts.push_back({from_noun ? i : pointer.to, from_noun ? pointer.to : i, kAttribute});
      }
      for (RelationOf const& r : kRelations) {
        if (r.symbol != pointer.symbol) continue;
        facts.push_back({r.reversed ? pointer.to : i, r.reversed ? i : pointer.to, r.relation});
      }
    }
  }
  std::sort(facts.begin(), facts.end(), [](Fact const& a, Fact const& b) { return a.order() < b.order(); });
  auto const same = [](Fact const& a, Fact const& b) { return a.order() == b.order(); };
  facts.erase(std::unique(facts.begin(), facts.end(), same), facts.end());
  return facts;
}

// All facts about the same two synsets. They are in the same split, because one fact can reveal another.
struct Pair {
  std::uint64_t hash;
  std::vector<std::uint32_t> facts;
};

std::vector<Pair> pairs_of(std::vector<Fact> const& facts, std::vector<Synset> const& synsets, std::int64_t seed) {
  auto const ends = [&](std::uint32_t i) { return std::minmax(facts[i].subject, facts[i].object); };
  std::vector<std::uint32_t> order(facts.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return ends(a) < ends(b); });

  std::string const salt = fmt::format("split {}", seed);
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || ends(order[i]) != ends(order[i - 1])) {
      std::pair<std::uint32_t, std::uint32_t> const both = ends(order[i]);
      auto const [a, b] = std::minmax(synsets[both.first].name, synsets[both.second].name);
      pairs.push_back({number(key_of_name(salt, a + " " + b)), {}});
    }
    pairs.back().facts.push_back(order[i]);
  }
  std::sort(pairs.begin(), pairs.end(),
            [](Pair const& a, Pair const& b) { return std::tie(a.hash, a.facts) < std::tie(b.hash, b.facts); });
  return pairs;
}

// Counts the uses of synsets and relations in training facts. After facts are held out, each synset and relation must
// have a training fact.
class Uses {
 public:
  Uses(std::vector<Fact> const& facts, std::size_t synsets) : facts_(facts), synsets_(synsets) {
    for (std::uint32_t i = 0; i < facts.size(); ++i) add(i, 1);
  }
  // Removes the facts of a pair from training. Returns false, and removes nothing, if a synset or relation would have
  // no training fact.
  bool take(Pair const& pair) {
    for (std::uint32_t i : pair.facts) add(i, -1);
    bool const enough = std::all_of(pair.facts.begin(), pair.facts.end(), [this](std::uint32_t i) {
      Fact const& f = facts_[i];
      return synsets_[f.subject] > 0 && synsets_[f.object] > 0 && relation(f.relation) > 0;
    });
    if (!enough) {
      for (std::uint32_t i : pair.facts) add(i, 1);
    }
    return enough;
  }

 private:
  void add(std::uint32_t i, int n) {
    synsets_[facts_[i].subject] += n;
    synsets_[facts_[i].object] += n;
    relation(facts_[i].relation) += n;
  }
  int& relation(std::string_view name) {
    for (auto& [known, uses] : relations_) {
      if (known == name) return uses;
    }
    return relations_.emplace_back(name, 0).second;
  }

  std::vector<Fact> const& facts_;
  std::vector<int> synsets_;
  std::vector<std::pair<std::string_view, int>> relations_;
};

enum class Side : char { kTrain, kValid, kTest };

std::vector<Side> split(std::vector<Fact> const& facts, std::vector<Synset> const& synsets, DataConfig const& config) {
  auto const share = [&](double of) { return static_cast<std::size_t>(of * static_cast<double>(facts.size())); };
  std::size_t const valid = share(config.valid_share), held_out = valid + share(config.test_share);
  std::vector<Side> sides(facts.size(), Side::kTrain);
  Uses uses(facts, synsets.size());
  std::size_t taken = 0;
  for (Pair const& pair : pairs_of(facts, synsets, config.split_seed)) {
    if (taken >= held_out) break;
    if (!uses.take(pair)) continue;
    for (std::uint32_t i : pair.facts) sides[i] = taken < valid ? Side::kValid : Side::kTest;
    taken += pair.facts.size();
  }
  return sides;
}

}  // namespace

Dataset read_wordnet(DataConfig const& config) {
  std::vector<Synset> const synsets = read_wordnet_database(config.folder);
  std::vector<Fact> const facts = facts_of(synsets);
  GPUPS_REQUIRE(!facts.empty(), "the database in {} has no relations (training needs some): check data.folder",
                config.folder);
  std::vector<Side> const sides = split(facts, synsets, config);

  Dataset data;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (sides[i] != Side::kTrain) continue;
    data.add_train(synsets[facts[i].subject].name, facts[i].relation, synsets[facts[i].object].name);
  }
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (sides[i] == Side::kTrain) continue;
    auto& split = sides[i] == Side::kValid ? data.valid : data.test;
    data.add_held_out(split, synsets[facts[i].subject].name, facts[i].relation, synsets[facts[i].object].name);
    GPUPS_ASSERT(!data.is_unseen(split.back()));
  }
  data.notices.push_back(
      fmt::format("{} of {} synsets in {} have relations", data.entities.size(), synsets.size(), config.folder));
  return data;
}

}  // namespace gpups::trainer
