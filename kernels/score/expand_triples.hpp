// SPDX-License-Identifier: Apache-2.0
// Lists the entries of triples: for each use of a row its key, and the source of its gradient.
#pragma once

#include "gpups/types.hpp"
#include "kernels/score/types.hpp"

namespace gpups::kernels {

struct ExpandTriples {
  View<std::uint32_t const> triples;  // (n, 3): the numbers of subject, relation and object
  View<Key const> entities;           // the key of each entity
  View<Key const> relations;
  std::size_t entries_per_triple;      // in the entity table; the first two are the subject and the object
  View<Key> entity_keys;               // (>= n * entries_per_triple)
  View<std::uint32_t> entity_sources;  // or empty: entry e has source e
  View<Key> relation_keys;             // (n)
  View<std::uint32_t> relation_sources;
  bool own_relation_sources;  // true: the relation of triple i has source i of a separate list; false: source
                              // kRelationGradient of the triple
};
void expand_triples(Stream& stream, ExpandTriples const& arguments);

}  // namespace gpups::kernels
