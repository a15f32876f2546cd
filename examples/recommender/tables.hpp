// SPDX-License-Identifier: Apache-2.0
// The tables of rows, and the rows that samples need.
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

inline constexpr std::uint64_t kSeed = 7;  // of a store with these tables; sets the initial values of rows

// Adds all tables to a store, in the order above: the TableId of a table is its number here.
void add_tables(gpups::Store& store);

// The entries of some samples in a table. A sample has one bag in each table: a history has several rows with weights,
// all other bags have one row.
struct Bags {
  std::vector<gpups::Key> keys;           // (entries)
  std::vector<std::uint32_t> offsets{0};  // (bags + 1): bag b has entries offsets[b] .. offsets[b+1]-1
  std::vector<float> weights;             // (entries), or empty: all 1
  std::vector<float> shares;              // (entries), or empty: weight / size of the bag, for gradients
};
// The entries of some samples in all tables.
struct Rows {
  Bags tables[kTables];
};

// Adds a bag with one row, or with the rows of a history.
void add_row(Bags& bags, std::uint64_t id);
void add_history(Bags& bags, std::span<Liked const> history);
