// SPDX-License-Identifier: Apache-2.0
// Which entities lie in the direction of a given one.
#pragma once

#include <string_view>
#include <vector>

#include "gpups/array.hpp"
#include "trainer/graph/dictionary.hpp"

namespace gpups::trainer {

struct Neighbour {
  std::uint32_t entity;
  double cosine;
};

// The `count` entities whose rows have the largest cosine with that of `entity`, itself left out; ties by number.
// rows: (entities, dim), on the host. Costs a dot product for each entity.
std::vector<Neighbour> nearest(MatrixView<float const> rows, std::uint32_t entity, std::size_t count);

// The number of a name. Throws Error for a name that is not there, with the one that is most like it.
std::uint32_t find_entity(Dictionary const& entities, std::string_view name);

}  // namespace gpups::trainer
