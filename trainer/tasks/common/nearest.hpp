// SPDX-License-Identifier: Apache-2.0
// Reads all rows of a table as one matrix, and finds the nearest neighbours of a row in it by cosine similarity.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpups/array.hpp"
#include "gpups/gpups.hpp"

namespace gpups::trainer {

// The number of keys in one look-up of read_rows().
inline constexpr std::size_t kKeysAtOnce = std::size_t{1} << 16;

// Returns the rows of `keys`, (keys, dim), on the store's device, whichever ranks own them. Looks up kKeysAtOnce keys
// at a time. Blocks. Not collective, but every rank must keep its store until all ranks have read their rows.
Matrix<float> read_rows(Stream& stream, Store& store, TableId table, std::vector<Key> const& keys);

// Returns whether each key has a row, whichever ranks own them: a batch of the training has used it. Blocks, and is
// like read_rows() otherwise.
std::vector<bool> wait_have_rows(Stream& stream, Store& store, TableId table, std::vector<Key> const& keys);

// An entity and its similarity.
struct Neighbour {
  std::uint32_t entity;
  double cosine;
};

// Returns the `count` other entities whose rows have the largest cosine with the row of `entity`. Entities with equal
// cosines are in the order of their numbers. rows: (entities, dim), on the host. Takes two dot products per entity.
std::vector<Neighbour> nearest(MatrixView<float const> rows, std::uint32_t entity, std::size_t count);

}  // namespace gpups::trainer
