// SPDX-License-Identifier: Apache-2.0
// Negatives of triples: drawn for all triples of a microbatch together, or dealt to each triple.
#pragma once

#include "gpups/types.hpp"
#include "kernels/score/types.hpp"

namespace gpups::kernels {

// Draws random negatives that all triples of a microbatch share, uniformly over all entities, or over the entities of
// one part of them; or takes all entities. The entities of microbatch m's part are a contiguous range of `by_part`. A
// draw is a function of the seed, the clock, the number of the microbatch in the global batch and the number of the
// draw, so every rank that computes it gets the same entity.
struct DrawNegatives {
  std::uint64_t seed;
  Clock clock;
  View<std::uint32_t const> groups;  // the numbers of the microbatches
  std::size_t negatives;             // for each side; those for objects are drawn first, then those for subjects
  std::size_t sides = 2;             // 1: for objects only
  bool all = false;                  // whether the negatives of a side are all entities. REQUIRES: as many negatives
  View<Key const> entities;          // at most 2^32
  View<Key const> by_part = {};      // the entities, those of part 0 first
  View<std::uint64_t const> part_offsets =
      {};                 // part p is by_part[part_offsets[p]] .. by_part[part_offsets[p + 1] - 1]
  std::size_t local = 0;  // the first negatives of each side are from the part of the microbatch, if it has entities
  std::size_t first;      // the entry of the first negative
  std::uint32_t first_source;  // the source of the first negative; each negative has its own source
  View<Key> keys;              // of the entries of the entity table
  View<std::uint32_t> sources;
};
void draw_negatives(Stream& stream, DrawNegatives const& arguments);

// Draws negative entities for each triple like cards: each step shuffles all entities and cuts them into hands. 16
// consecutive triples of the batch draw from one hand. Each of them starts at a different position of the hand, if the
// hand is large enough, and continues at its beginning after its end.
//
// For one triple, all entities are equally likely, and the negatives are distinct if there are enough entities, as with
// independent draws. But a step reads and updates fewer rows. The rows of a hand stay in a cache while its triples read
// them, and the sources of the triples stay there while the rows of the hand are updated. The entities of a hand are
// used about equally often. Writes 12 bytes per negative.
inline constexpr std::uint32_t kHandTriples = 16;

// Returns the number of entities of a hand, for a batch of this many triples with `draws` draws each: the size with
// which `reuse` of the 16 triples use each entity. Smaller if hands would share entities otherwise, but at least
// `draws`.
constexpr std::uint64_t hand_size(std::uint64_t entities, std::uint64_t batch_triples, std::uint64_t draws,
                                  std::uint64_t reuse) {
  std::uint64_t const hands = (batch_triples + kHandTriples - 1) / kHandTriples;
  std::uint64_t const share = entities / (hands == 0 ? 1 : hands), wanted = (draws * kHandTriples + reuse - 1) / reuse;
  return share < draws ? draws : share < wanted ? share : wanted;
}

// Draws for the triples of a microbatch.
struct DealNegatives {
  std::uint64_t seed;
  Clock clock;
  View<std::uint32_t const> numbers;  // (n): the number of each triple in the global batch
  std::uint32_t batch_triples;        // in the global batch
  std::uint32_t negatives;            // for the object; as many are drawn for the subject; at least 1
  std::uint32_t reuse;                // 1 .. kHandTriples, see hand_size()
  View<Key const> entities;           // (1 .. 2^32), in an order that does not depend on their properties
  // The share of local hands, 0 .. 1: their entities are of the triple's part. If a part has fewer entities than a
  // triple draws, the entities repeat; if it has none, its triples draw from all entities.
  float local = 0;
  View<std::uint32_t const> parts = {};  // (n): the part of each triple; for local hands only, as the next two
  View<Key const> by_part = {};          // the entities, those of part 0 first; within a part, as `entities`
  View<std::uint64_t const> part_offsets =
      {};  // (parts + 1): part p is by_part[part_offsets[p]] .. by_part[part_offsets[p + 1] - 1]
  // Triple i's negatives are keys[first + i * step ..]: those for the object, then those for the subject.
  std::size_t first, step;
  View<Key> keys;
  View<std::uint32_t> sources;  // of these entries: the triple's query for objects or for subjects; or empty
};
void deal_negatives(Stream& stream, DealNegatives const& arguments);

}  // namespace gpups::kernels
