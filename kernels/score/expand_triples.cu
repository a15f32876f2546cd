// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/expand_triples.hpp"

#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, ExpandTriples const& g) {
  each(ex, g.triples.size() / 3, [g] GPUPS_FN(std::size_t i) {
    std::size_t const first = i * g.entries_per_triple;
    auto const source = static_cast<std::uint32_t>(kSourcesPerTriple * i);
    g.entity_keys[first] = g.entities[g.triples[3 * i]];
    g.entity_keys[first + 1] = g.entities[g.triples[3 * i + 2]];
    if (!g.entity_sources.empty()) {
      g.entity_sources[first] = source + kSubjectGradient;
      g.entity_sources[first + 1] = source + kObjectGradient;
    }
    g.relation_keys[i] = g.relations[g.triples[3 * i + 1]];
    g.relation_sources[i] = g.own_relation_sources ? static_cast<std::uint32_t>(i) : source + kRelationGradient;
  });
}

GPUPS_KERNEL(expand_triples, ExpandTriples)

}  // namespace gpups::kernels
