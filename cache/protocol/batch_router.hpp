// SPDX-License-Identifier: Apache-2.0
// The routes of this rank's batches: collects what homes say about the owners of rows, and makes the lists of each
// owner.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cache/protocol/round_state.hpp"
#include "kernels/placement/reader_lists.hpp"

namespace gpups::cache {

// For the thread that makes progress. Functions with `wait` in their names block until the stream is done. Throws
// PeerError for invalid routes of peers.
class BatchRouter {
 public:
  // `state` must outlive this object.
  explicit BatchRouter(RoundState& state) : state_(state) {}

  // Receives the routes of a message, and then calls `then`. They are part of the section `tag`.
  void receive(Rank home, Message const& message, std::uint64_t tag, std::function<void()> then);

  // Makes the lists of a batch, when its homes have sent their routes, and finds the rows that this rank owns.
  void wait_route(PendingBatch& pending);

 private:
  // The parts of a batch with rows that are away from their homes, and the lists of these parts.
  struct ReroutedParts {
    std::vector<std::size_t> parts;                 // their numbers in the batch, by table
    std::vector<kernels::ListRows::RowRange> rows;  // of each
    Array<Key> keys;                                // of the rows
    Array<std::uint32_t> owners, order, items;
    std::shared_ptr<Array<std::uint32_t> const> positions;  // of the items of all lists
    std::vector<std::uint32_t> first;                       // where each list begins
    std::vector<std::uint32_t> differ;                      // see kernels::ListRows

    // Returns the positions of some lists of a part.
    PositionList lists(std::size_t part, std::uint32_t begin, std::uint32_t count) const;
  };
  ReroutedParts wait_list(PendingBatch const& pending);
  void set_lists(PendingBatch& pending, ReroutedParts const& rerouted);
  void wait_list_answers(PendingBatch& pending, ReroutedParts const& rerouted);
  void wait_find_owned(PendingBatch const& pending, ReroutedParts const& rerouted);
  RankLists rank_lists(ReroutedParts const& rerouted, std::size_t part, std::uint32_t list) const;
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(state_.ranks); }
  std::uint32_t lists_of_part() const { return kernels::lists_of_part(ranks()); }

  RoundState& state_;
};

}  // namespace gpups::cache
