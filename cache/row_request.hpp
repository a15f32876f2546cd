// SPDX-License-Identifier: Apache-2.0
// What is asked of the owners of rows between steps: to read them, to set them, to erase them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// Rows of one table, wherever they are. Keys are grouped by owner, and distinct where rows change.
struct RowRequest {
  enum class Kind { kLookup, kAssign, kErase };

  Kind kind{};
  TableId table{};
  std::vector<std::uint32_t> owners;  // (ranks + 1): keys of owner q are owners[q] .. owners[q+1]
  Array<Key> keys;
  Matrix<float> values;       // kLookup: read into, kAssign: set from
  Array<std::uint8_t> found;  // kLookup
  std::size_t missing = 0;    // owners that have not answered, this rank included
  std::vector<Rank> unanswered;
  std::atomic<bool> done = false;

  std::size_t owned_by(Rank owner) const { return owners[number(owner) + 1] - owners[number(owner)]; }
  View<Key const> keys_of(Rank owner) const { return keys.view().slice(owners[number(owner)], owned_by(owner)); }
  MatrixView<float> values_of(Rank owner) const { return values.view().slice(owners[number(owner)], owned_by(owner)); }
  View<std::uint8_t> found_of(Rank owner) const { return found.view().slice(owners[number(owner)], owned_by(owner)); }
};

// A request for keys, which may go. positions: where each given key is among the request's. Waits for `stream`. Throws
// Error for keys that are too many, or elsewhere.
std::shared_ptr<RowRequest> make_request(Stream& stream, RowRequest::Kind kind, TableId table, View<Key const> keys,
                                         std::size_t dim, int ranks, Array<std::uint32_t>& positions);

}  // namespace gpups::cache
