// SPDX-License-Identifier: Apache-2.0
// Negatives of their own for each triple, dealt like cards: entities are shuffled anew for each step and cut into
// hands; 16 triples that lie beside each other in the batch are dealt theirs from one hand, each from another
// place on if there are enough, going around it. For a triple these are entities as likely as any other, and distinct
// if there are enough, as if it had drawn alone. But a step reads and updates fewer rows, and those of a hand stay in a
// cache while its triples read them, as do the triples' sources while the hand's rows are updated. Each entity of a
// hand is used about equally often. Writes 12 bytes per negative.
#pragma once

#include "gpups/types.hpp"
#include "kernels/score/types.hpp"

namespace gpups::kernels {

inline constexpr std::uint32_t kHandTriples = 16;

// Entities of a hand where a batch has this many triples, of which each draws `draws`: so many that `reuse` of the 16
// triples use each; fewer where hands would have to share entities, but never fewer than a triple draws.
constexpr std::uint64_t hand_size(std::uint64_t entities, std::uint64_t batch_triples, std::uint64_t draws,
                                  std::uint64_t reuse) {
  std::uint64_t const hands = (batch_triples + kHandTriples - 1) / kHandTriples;
  std::uint64_t const share = entities / (hands == 0 ? 1 : hands), wanted = (draws * kHandTriples + reuse - 1) / reuse;
  return share < draws ? draws : share < wanted ? share : wanted;
}

struct DealNegatives {
  std::uint64_t seed;
  Clock clock;
  View<std::uint32_t const> numbers;  // (n), of triples in the global batch
  std::uint32_t batch_triples;        // in the global batch
  std::uint32_t negatives;            // for the object, and as many for the subject; at least 1
  std::uint32_t reuse;                // 1 .. kHandTriples, see hand_size()
  View<Key const> entities;           // (1 .. 2^32), in any order that has nothing to do with what they are
  std::size_t first, step;            // triple i's negatives are keys[first + i * step ..], for the object first
  View<Key> keys;
  View<std::uint32_t> sources;  // of these entries: the triple's query for objects, or for subjects; or empty
};
void deal_negatives(Stream& stream, DealNegatives const& arguments);

}  // namespace gpups::kernels
