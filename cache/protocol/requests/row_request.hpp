// SPDX-License-Identifier: Apache-2.0
// Requests for rows outside of rounds: look-ups, assigns and erases, and the requests that move rows between ranks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cache/wire/message.hpp"
#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

inline constexpr std::size_t kWhereWords = 4;

// A request for rows of one table. Keys are grouped by the rank that is asked: their home or, if the home asks for rows
// that are away, their owner. Except for kLookup they are distinct. While the request is in flight, only the thread
// that makes progress uses it; then it calls `then` and sets `done`.
struct RowRequest {
  using Kind = RowRequestKind;

  Kind kind{};
  TableId table{};
  std::vector<std::uint32_t> targets;  // (ranks + 1): keys for rank q are targets[q] .. targets[q + 1] - 1
  Array<Key> keys;
  Matrix<float> values;          // (keys, dim)
  Array<std::uint8_t> found;     // (keys), 1 for rows that exist; kTake: also for rows that wait for admission
  std::size_t width = 0;         // words of a key
  Array<std::uint32_t> words;    // (keys * width), those of each rank together
  std::size_t missing = 0;       // number of ranks that are not done, including this rank
  std::vector<Rank> unanswered;  // other ranks that have not answered
  std::function<void()> then;    // or empty
  std::atomic<bool> done = false;

  std::size_t size() const { return targets.back(); }  // keys; the array may be larger
  View<Key const> all_keys() const { return keys.view().slice(0, size()); }
  std::size_t first_of(Rank rank) const { return targets[number(rank)]; }
  std::size_t size_of(Rank rank) const { return targets[number(rank) + 1] - targets[number(rank)]; }
  View<Key const> keys_of(Rank rank) const { return keys.view().slice(first_of(rank), size_of(rank)); }
  MatrixView<float> values_of(Rank rank) const {
    return values.rows() == 0 ? MatrixView<float>() : values.view().slice(first_of(rank), size_of(rank));
  }
  View<std::uint8_t> found_of(Rank rank) const {
    return found.empty() ? View<std::uint8_t>() : found.view().slice(first_of(rank), size_of(rank));
  }
  View<std::uint32_t> words_of(Rank rank) const {
    return words.view().slice(first_of(rank) * width, size_of(rank) * width);
  }

  // Allocates the arrays that the kind needs. state_columns: of the table. REQUIRES: `keys` are set.
  void allocate(Device device, std::size_t dim, std::size_t state_columns);
};

// Makes a request for `keys`, grouped by home. They may be freed afterwards. positions: set to an array with the index
// of each given key in RowRequest::keys. Waits for `stream`. Throws Error for too many keys, and for keys on another
// device.
std::shared_ptr<RowRequest> make_request(Stream& stream, RowRequest::Kind kind, TableId table, View<Key const> keys,
                                         std::size_t dim, std::size_t state_columns, int ranks,
                                         Array<std::uint32_t>& positions);

// Distinct keys on the host, grouped by home: home h has keys[first[h]] .. keys[first[h + 1] - 1].
struct KeysOfHomes {
  std::vector<Key> keys;
  std::vector<std::uint32_t> first;  // (ranks + 1)

  std::span<Key const> of(Rank home) const {
    return std::span(keys).subspan(first[number(home)], first[number(home) + 1] - first[number(home)]);
  }
};
// Groups keys. call: the function of the Store, for errors. Waits for `stream`. Throws as make_request().
KeysOfHomes wait_group_by_home(Stream& stream, char const* call, View<Key const> keys, int ranks);

// Makes a request for keys whose owners are known. positions: set to the index of each key of the request in `keys`.
// keys, owners: (n), on the host. A key without an owner, kNoOwner, is left out. Waits for `stream`.
inline constexpr Rank kNoOwner{0xFFFFFFFF};
std::shared_ptr<RowRequest> make_owned_request(Stream& stream, RowRequest::Kind kind, TableId table,
                                               std::span<Key const> keys, std::span<Rank const> owners, std::size_t dim,
                                               std::size_t state_columns, int ranks,
                                               std::vector<std::uint32_t>& positions);

}  // namespace gpups::cache
