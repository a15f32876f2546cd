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

}  // namespace gpups::trainer
