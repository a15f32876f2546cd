// SPDX-License-Identifier: Apache-2.0
// Draws negatives evenly over the entities, for groups: a group is one triple, or all triples of a microbatch. A draw
// is a function of seed, clock, the group's number in the global batch and the draw's number, so every rank that
// computes the group draws the same.
#pragma once

#include "gpups/types.hpp"
#include "kernels/score/types.hpp"

namespace gpups::kernels {

struct DrawNegatives {
  std::uint64_t seed;
  Clock clock;
  View<std::uint32_t const> groups;  // their numbers in the global batch
  std::size_t negatives;             // of each side: first those for objects, then those for subjects
  View<Key const> entities;          // at most 2^32
  std::size_t first;                 // entry of the first group's first negative
  std::size_t step;                  // entries from one group to the next
  bool shared;  // each negative has a source of its own, from `first_source`; else its triple's query
  std::uint32_t first_source;
  View<Key> keys;  // of the entity table's entries
  View<std::uint32_t> sources;
};
void draw_negatives(Stream& stream, DrawNegatives const& arguments);

}  // namespace gpups::kernels
