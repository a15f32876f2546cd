// SPDX-License-Identifier: Apache-2.0
// Which entities are known to answer a question: the objects of (subject, relation), or the subjects of (object,
// relation). Sorted lists end to end; 4 bytes for each triple and 12 for each question.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "trainer/graph/dictionary.hpp"

namespace gpups::trainer {

class RankingFilter {
 public:
  // objects: true for the objects of (subject, relation).
  RankingFilter(std::initializer_list<std::span<Triple const>> splits, bool objects);

  // Distinct and sorted; empty for a question that no triple answers. entity: the known one of the two.
  std::span<std::uint32_t const> of(std::uint32_t entity, std::uint32_t relation) const;

 private:
  std::vector<std::uint64_t> questions_;  // entity << 32 | relation, sorted
  std::vector<std::uint32_t> offsets_;    // (questions + 1)
  std::vector<std::uint32_t> answers_;
};

}  // namespace gpups::trainer
