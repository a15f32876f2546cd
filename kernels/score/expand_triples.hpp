// SPDX-License-Identifier: Apache-2.0
// Lists the entries of triples: which row of which table each use of it reads, and which source its gradient has.
#pragma once

#include "gpups/types.hpp"
#include "kernels/score/types.hpp"

namespace gpups::kernels {

struct ExpandTriples {
  View<std::uint32_t const> triples;  // (n, 3): numbers of subject, relation, object
  View<Key const> entities;           // key of each entity
  View<Key const> relations;
  std::size_t entries_per_triple;      // of the entity table; the first two are the subject's and the object's
  View<Key> entity_keys;               // (>= n * entries_per_triple)
  View<std::uint32_t> entity_sources;  // or empty: each entry has a source of its own, of its number
  View<Key> relation_keys;             // (n)
  View<std::uint32_t> relation_sources;
  bool own_relation_sources;  // triple i has source i of a list of the relations' own; else kRelationGradient
};
void expand_triples(Stream& stream, ExpandTriples const& arguments);

}  // namespace gpups::kernels
