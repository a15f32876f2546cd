// SPDX-License-Identifier: Apache-2.0
// Requests to the owners of rows, between steps: look-ups, assigns and erases.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// A request for rows of one table, of any owner. Keys are grouped by owner; for kAssign and kErase they are distinct.
// While the request is in flight, only the thread that makes progress uses it; then it sets `done`.
struct RowRequest {
  enum class Kind { kLookup, kAssign, kErase };

  Kind kind{};
  TableId table{};
  std::vector<std::uint32_t> owners;  // (ranks + 1): keys of owner q are owners[q] .. owners[q+1]
  Array<Key> keys;
  Matrix<float> values;          // (keys, dim). kLookup: the result; kAssign: the values to set
  Array<std::uint8_t> found;     // (keys), kLookup: 1 for rows that exist
  std::size_t missing = 0;       // number of owners that are not done, including this rank
  std::vector<Rank> unanswered;  // other owners that have not answered
  std::atomic<bool> done = false;

  std::size_t owned_by(Rank owner) const { return owners[number(owner) + 1] - owners[number(owner)]; }
  View<Key const> keys_of(Rank owner) const { return keys.view().slice(owners[number(owner)], owned_by(owner)); }
  MatrixView<float> values_of(Rank owner) const { return values.view().slice(owners[number(owner)], owned_by(owner)); }
  View<std::uint8_t> found_of(Rank owner) const { return found.view().slice(owners[number(owner)], owned_by(owner)); }
};

// Makes a request for `keys`, which may be freed afterwards. positions: set to an array with the index of each given
// key in RowRequest::keys. Waits for `stream`. Throws Error for too many keys, and for keys on another device.
std::shared_ptr<RowRequest> make_request(Stream& stream, RowRequest::Kind kind, TableId table, View<Key const> keys,
                                         std::size_t dim, int ranks, Array<std::uint32_t>& positions);

}  // namespace gpups::cache
