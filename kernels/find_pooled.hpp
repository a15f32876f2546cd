// SPDX-License-Identifier: Apache-2.0
// Finds the keys of many tables and pools their rows, in one pass over all of them: on a GPU in one launch, on the host
// with the search for later keys, and the reading of their rows, under way while earlier rows are added up. Tables may
// differ in dim and type. Reads a line of the index and a row per entry, writes 4 * stride bytes per bag.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/table.hpp"
#include "gpups/types.hpp"
#include "kernels/bucket.hpp"
#include "kernels/number_type.hpp"

namespace gpups::kernels {

// A table's share of the batch. Bag b has the entries offsets[b] .. offsets[b + 1] - 1 and becomes row b of `out`: the
// sum of its rows, or their mean, in float, in the order of its entries; zeros where it is empty.
//
// A key without a row reads as the initial value that its row would have; so does it count in a mean. Where that should
// be zeros, leave `initializer` as it is here. An entry that is named by number, and has none, reads as zeros.
struct PooledTable {
  TypedRows rows;                   // stride >= dim
  Buckets index{};                  // from keys to numbers of rows; unused where keys are empty
  View<Key const> keys{};           // (entries); empty: `ids` say which rows
  View<std::uint32_t const> ids{};  // numbers of existing rows, or kNoRow; (entries), or as `positions` say
  // (entries), the row of entry e is ids[positions[e]]; empty: ids[e].
  View<std::uint32_t const> positions{};
  View<std::uint32_t const> offsets{};  // (bags + 1); empty: entry b is bag b
  View<float const> weights{};          // (entries), what each row is multiplied with; empty: all 1
  bool mean = false;                    // the sum is divided by the number of entries
  MatrixView<float> out;                // (>= bags, dim); padding is set to zero
  View<std::uint32_t> found{};          // (entries), gets the number of each key, or kNoRow; empty: not wanted
  Initializer initializer{Initializer::Kind::kConstant, 0.0F};
  std::uint64_t seed = 0;  // of the table
};

struct FindPooled {
  std::span<PooledTable const> tables;  // on the host, for the time of the call
};
void find_pooled(Stream& stream, FindPooled const& arguments);

}  // namespace gpups::kernels
