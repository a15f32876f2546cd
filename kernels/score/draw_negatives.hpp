// SPDX-License-Identifier: Apache-2.0
// RoundingKey negatives that all triples of a microbatch share, evenly over the entities. A draw is a function of seed,
// clock, the microbatch's number in the global batch and the draw's number, so every rank that computes it draws the
// same.
#pragma once

#include "gpups/types.hpp"
#include "kernels/score/types.hpp"

namespace gpups::kernels {

struct DrawNegatives {
  std::uint64_t seed;
  Clock clock;
  View<std::uint32_t const> groups;  // numbers of microbatches
  std::size_t negatives;             // of each side: first those for objects, then those for subjects
  View<Key const> entities;          // at most 2^32
  std::size_t first;                 // entry of the first negative
  std::uint32_t first_source;        // its source; each negative has one of its own
  View<Key> keys;                    // of the entity table's entries
  View<std::uint32_t> sources;
};
void draw_negatives(Stream& stream, DrawNegatives const& arguments);

}  // namespace gpups::kernels
