// SPDX-License-Identifier: Apache-2.0
// Reciprocal relations (Kazemi and Poole 2018; Lacroix et al. 2018): each relation has a second row, the inverse, with
// which an object asks for its subject. A triple (s, r, o) is then trained as (s, r, o) and (o, inverse of r, s), and
// each of the two has negatives for its object only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/input/dictionary.hpp"
#include "trainer/tasks/graph/model.hpp"

namespace gpups::trainer {

// Returns the keys of the inverses of the first `count` relations.
std::vector<Key> inverse_keys(Dictionary const& relations, std::size_t count);

// Returns the number of a relation's inverse: the inverses follow all relations in the vocabulary.
inline std::uint32_t inverse_relation(std::uint32_t relation, std::size_t relations) {
  return relation + static_cast<std::uint32_t>(relations);
}

// Inserts after each triple (s, r, o) the triple (o, inverse of r, s).
void add_reciprocals(TripleBatch& batch, std::size_t relations);

}  // namespace gpups::trainer
