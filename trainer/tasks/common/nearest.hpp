// SPDX-License-Identifier: Apache-2.0
// Finds the nearest neighbours of an entity by cosine similarity.
#pragma once

#include <string_view>
#include <vector>

#include "gpups/array.hpp"
#include "trainer/input/dictionary.hpp"

namespace gpups::trainer {

// An entity and its similarity.
struct Neighbour {
  std::uint32_t entity;
  double cosine;
};

// Returns the `count` other entities whose rows have the largest cosine with the row of `entity`. Entities with equal
// cosines are in the order of their numbers. rows: (entities, dim), on the host. Takes two dot products per entity.
std::vector<Neighbour> nearest(MatrixView<float const> rows, std::uint32_t entity, std::size_t count);

// Returns the number of a name. Throws Error if there is no such entity; the error suggests the most similar name.
std::uint32_t find_entity(Dictionary const& entities, std::string_view name);

}  // namespace gpups::trainer
