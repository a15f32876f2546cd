// SPDX-License-Identifier: Apache-2.0
// The queries of a graph with all of their answers, as training samples (KvsAll: Dettmers et al. 2018; the name is
// LibKGE's).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/tasks/graph/dataset.hpp"

namespace gpups::trainer {

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

}  // namespace gpups::trainer
