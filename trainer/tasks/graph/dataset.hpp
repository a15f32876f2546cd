// SPDX-License-Identifier: Apache-2.0
// A knowledge graph in memory: the names of entities and relations, and three splits of triples.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/input/dictionary.hpp"
#include "trainer/tasks/graph/model.hpp"

namespace gpups::trainer {

// All triples of a run.
struct Dataset {
  Dictionary entities{"entity"};
  Dictionary relations{"relation"};
  // The number of names in the training data, which are the first in the dictionaries. Others are unseen: they occur in
  // held-out triples only. An unseen entity is trained as a negative; an unseen relation keeps its initial row.
  std::size_t seen_entities = 0, seen_relations = 0;
  std::vector<Triple> train, valid, test;
  std::vector<std::string> notices;  // sentences about the reading, for the log

  // Adds a training triple, and its names if they are new.
  void add_train(std::string_view subject, std::string_view relation, std::string_view object);
  // Adds a triple to `split`, for evaluation, and its names if they are new. REQUIRES: all training triples are there.
  void add_held_out(std::vector<Triple>& split, std::string_view subject, std::string_view relation,
                    std::string_view object);

  // Returns a split. REQUIRES: name is "train", "valid" or "test".
  std::vector<Triple> const& split(std::string_view name) const;
  // Returns whether a name of the triple is not in the training data.
  bool is_unseen(Triple const& triple) const {
    return std::max(triple.subject, triple.object) >= seen_entities || triple.relation >= seen_relations;
  }
  // Returns the number of such triples.
  std::size_t count_unseen(std::span<Triple const> triples) const;
  // Returns the keys of all entities, which are negatives and candidates, and of the relations in the training data.
  Vocabulary vocabulary() const;
  // Returns a digest of names and triples.
  std::uint64_t digest() const;
};

// The queries of a graph with all of their answers, as training samples (KvsAll: Dettmers et al. 2018; the name is
// LibKGE's).

// The distinct queries of the training triples in both directions: an entity and a relation, which ask for objects, or
// an entity and an inverse relation (see reciprocal.hpp), which ask for subjects. Takes 8 bytes for each triple, and 16
// for each query; 24 more for each triple while it is made.
class QuerySet {
 public:
  explicit QuerySet(Dataset const& data);

  std::size_t size() const { return queries_.size(); }
  std::uint32_t entity(std::size_t query) const { return queries_[query].entity; }
  std::uint32_t relation(std::size_t query) const { return queries_[query].relation; }
  // Returns the entities that answer a query, each once.
  std::span<std::uint32_t const> answers(std::size_t query) const {
    return std::span(answers_).subspan(offsets_[query], offsets_[query + 1] - offsets_[query]);
  }
  std::size_t answers_count() const { return answers_.size(); }  // of all queries
  std::uint64_t bytes() const {
    return queries_.capacity() * sizeof(Query) + offsets_.capacity() * sizeof(offsets_[0]) +
           answers_.capacity() * sizeof(answers_[0]);
  }

  // Adds a query to a batch. As the object of its triple, which the penalties need, it gets the answer that the random
  // bits select.
  void add_to(TripleBatch& batch, std::size_t query, std::uint64_t bits) const;

 private:
  struct Query {
    std::uint32_t entity, relation;
    bool operator==(Query const&) const = default;
  };
  std::vector<Query> queries_;  // by entity, then by relation
  std::vector<std::uint64_t> offsets_{0};
  std::vector<std::uint32_t> answers_;
};

// Adds the name of a key to an error message of the store, which has keys only: returns "... key 123 ('dog.n.01') in
// table 'entities' ..." for "... key 123 in table 'entities' ...". Returns other messages unchanged. Compares all keys.
std::string with_names(std::string message, Dataset const& data);

}  // namespace gpups::trainer
