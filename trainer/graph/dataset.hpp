// SPDX-License-Identifier: Apache-2.0
// A knowledge graph in memory: the names of entities and relations, and three splits of triples.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/graph/dictionary.hpp"
#include "trainer/graph/model.hpp"

namespace gpups::trainer {

// All triples of a run.
struct Dataset {
  Dictionary entities{"entity"};
  Dictionary relations{"relation"};
  std::vector<Triple> train, valid, test;
  std::vector<std::string> notices;  // sentences about the reading, for the log

  // Adds a training triple, and its names if they are new.
  void add_train(std::string_view subject, std::string_view relation, std::string_view object);
  // Adds a triple to `split`, for evaluation. Returns false, and adds nothing, if a name is not in the training data:
  // the model has no row for it.
  bool add_held_out(std::vector<Triple>& split, std::string_view subject, std::string_view relation,
                    std::string_view object);

  // Returns a split. REQUIRES: name is "train", "valid" or "test".
  std::vector<Triple> const& split(std::string_view name) const;
  Vocabulary vocabulary() const { return {entities.keys(), relations.keys()}; }
  // Returns a digest of names and triples.
  std::uint64_t digest() const;
};

}  // namespace gpups::trainer
