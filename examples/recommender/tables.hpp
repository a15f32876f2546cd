// SPDX-License-Identifier: Apache-2.0
// The tables of rows, and which of them a visit names.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "clicks.hpp"
#include "gpups/gpups.hpp"

enum Table : std::uint32_t { kUsers, kItems, kLiked, kContexts, kTables };
inline constexpr Table kAllTables[] = {kUsers, kItems, kLiked, kContexts};
inline constexpr std::size_t kDim = 8, kContextDim = 4;
inline constexpr std::size_t kDims[kTables] = {1, kDim, kDim, kContextDim};

inline constexpr std::uint64_t kSeed = 7;  // of a store with these tables: rows' initial values depend on it

// Adds all of them, in the order above: a table's TableId is its number here.
void add_tables(gpups::Store& store);

// The rows that some samples name. In each table a sample has a bag: one row, but for its history, which has several,
// each with a weight.
struct Bags {
  std::vector<gpups::Key> keys;           // (entries)
  std::vector<std::uint32_t> offsets{0};  // (bags + 1): bag b has entries offsets[b] .. offsets[b+1]-1
  std::vector<float> weights;             // (entries), or empty: all 1
  std::vector<float> shares;              // (entries), or empty: weight / size of the bag, for gradients
};
struct Rows {
  Bags tables[kTables];
};

void add_row(Bags& bags, std::uint64_t id);
void add_history(Bags& bags, std::span<Liked const> history);
