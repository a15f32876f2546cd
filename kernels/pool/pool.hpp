// SPDX-License-Identifier: Apache-2.0
// Pooled look-ups: the sums or means of the rows of bags, which are found by key or by position, and the check of bags
// from callers.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/table.hpp"
#include "gpups/types.hpp"
#include "kernels/index/bucket.hpp"
#include "kernels/rows/number_type.hpp"

namespace gpups::kernels {

// Finds the keys of many tables and pools their rows, all in one pass. On a GPU, one launch does many tables; on the
// host, later keys are searched, and their rows are loaded, while earlier rows are added up. Tables may differ in dim
// and data type. Reads a cache line of the index and a row per entry; writes 4 * stride bytes per bag.

// The part of a batch that uses one table. Bag b has the entries offsets[b] .. offsets[b + 1] - 1. Row b of `out`
// becomes the sum or the mean of their rows, computed in float in the order of the entries; zeros for an empty bag.
//
// A key without a row reads as the initial value that its row would have, and counts in a mean. With the default
// `initializer` it reads as zeros. An entry whose id is kNoRow reads as zeros.
struct PooledTable {
  TypedRows rows;                   // stride >= dim
  Buckets index{};                  // from keys to row numbers; unused if `keys` is empty
  View<Key const> keys{};           // (entries); empty: `ids` has the rows
  View<std::uint32_t const> ids{};  // row numbers or kNoRow; (entries), or indexed by `positions`
  // (entries): the row of entry e is ids[positions[e]]; empty: it is ids[e].
  View<std::uint32_t const> positions{};
  View<std::uint32_t const> offsets{};  // (bags + 1); empty: entry b is bag b
  View<float const> weights{};          // (entries), factors of the rows; empty: all 1
  bool mean = false;                    // the sum is divided by the number of entries
  MatrixView<float> out;                // (>= bags, dim); padding is set to zero
  View<std::uint32_t> found{};          // (entries), output: the row number of each key, or kNoRow; empty: none
  Initializer initializer{Initializer::Kind::kConstant, 0.0F};
  std::uint64_t seed = 0;  // of the table
};

struct FindPooled {
  std::span<PooledTable const> tables;  // on the host; used only during the call
};
void find_pooled(Stream& stream, FindPooled const& arguments);

// Computes the sum or mean of the rows of each bag, weighted or not, in float, in the order of the entries; zeros for
// an empty bag. Reads 4 * stride + 4 bytes per entry, 4 more with coefficients, and writes 4 * stride bytes per bag;
// targets take 4 bytes per bag.
struct GatherPooled {
  MatrixView<float const> rows;         // (rows, dim)
  View<std::uint32_t const> positions;  // (entries), each < rows
  // (bags + 1): bag b has the entries offsets[b] .. offsets[b + 1] - 1; empty: entry b is bag b.
  View<std::uint32_t const> offsets;
  bool mean;              // else the sum
  MatrixView<float> out;  // (>= bags, dim), the same stride
  // (entries), factors of the rows; empty: all 1. The mean is the sum divided by the number of entries.
  View<float const> coefficients{};
  View<std::uint32_t const> targets{};  // (bags), distinct: bag b is row targets[b] of out; empty: row b
};
void gather_pooled(Stream& stream, GatherPooled const& arguments);

// Checks that offsets cut entries into bags, copies the offsets, and finds the bag of each entry. Moves 8 bytes per bag
// and 4 per entry.

struct BagPart {
  View<std::uint32_t const> offsets;  // (bags + 1); valid if non-decreasing from 0 to the number of entries
  View<std::uint32_t> kept;           // (bags + 1), output: a copy
  View<std::uint32_t> bag_of;         // (entries), output; undefined if an offset is not valid
};

struct ValidateBags {
  std::span<BagPart const> parts;
  View<std::uint32_t> bad_offsets;  // (parts), output: index of the first offset that is not valid, or kNoRow
};
void validate_bags(Stream& stream, ValidateBags const& arguments);

}  // namespace gpups::kernels
