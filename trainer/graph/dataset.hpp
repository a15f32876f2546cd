// SPDX-License-Identifier: Apache-2.0
// A knowledge graph in memory: names, and triples of their numbers in three splits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/graph/dictionary.hpp"
#include "trainer/graph/model.hpp"

namespace gpups::trainer {

struct Dataset {
  Dictionary entities{"entity"};
  Dictionary relations{"relation"};
  std::vector<Triple> train, valid, test;
  std::vector<std::string> notices;  // what a user should know about the reading, in sentences

  // A triple to learn from; its names are numbered.
  void add_train(std::string_view subject, std::string_view relation, std::string_view object);
  // A triple to rank. False: a name is not in the training data, so there is nothing to rank it by; it is left out.
  bool add_held_out(std::vector<Triple>& split, std::string_view subject, std::string_view relation,
                    std::string_view object);

  // REQUIRES: name is "train", "valid" or "test".
  std::vector<Triple> const& split(std::string_view name) const;
  Vocabulary vocabulary() const { return {entities.keys(), relations.keys()}; }
  // A digest of names and triples: equal data has equal ones.
  std::uint64_t digest() const;
};

}  // namespace gpups::trainer
