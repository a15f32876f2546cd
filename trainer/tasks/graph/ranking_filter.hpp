// SPDX-License-Identifier: Apache-2.0
// The known answers of questions, which filtered ranking leaves out: the objects of (subject, relation), or the
// subjects of (object, relation). Takes 4 bytes per triple and 12 per question.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "trainer/tasks/graph/model.hpp"

namespace gpups::trainer {

// The known answers of one direction.
class RankingFilter {
 public:
  // objects: true: answers are objects; false: answers are subjects.
  RankingFilter(std::initializer_list<std::span<Triple const>> splits, bool objects);

  // Returns the answers, sorted and distinct; empty if no triple answers the question. entity: the entity in the
  // question.
  std::span<std::uint32_t const> of(std::uint32_t entity, std::uint32_t relation) const;

 private:
  std::vector<std::uint64_t> questions_;  // entity << 32 | relation, sorted
  std::vector<std::uint32_t> offsets_;    // (questions + 1)
  std::vector<std::uint32_t> answers_;
};

}  // namespace gpups::trainer
