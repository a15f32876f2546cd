// SPDX-License-Identifier: Apache-2.0
// Draws random negatives that all triples of a microbatch share, uniformly over all entities, or over the entities of
// one part of them; or takes all entities. The entities of microbatch m's part are a contiguous range of `by_part`. A
// draw is a function of the seed, the clock, the number of the microbatch in the global batch and the number of the
// draw, so every rank that computes it gets the same entity.
#pragma once

#include "gpups/types.hpp"
#include "kernels/score/types.hpp"

namespace gpups::kernels {

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

}  // namespace gpups::kernels
