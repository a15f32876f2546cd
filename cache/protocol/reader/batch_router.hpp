// SPDX-License-Identifier: Apache-2.0
// The routes of this rank's batches: collects what homes say about the owners of rows, and makes the lists of each
// owner.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cache/protocol/round/round_state.hpp"
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

  // Makes the lists of a batch, when its homes have sent their routes. Queued on the stream. reads: the host reads
  // their sizes with these.
  void begin(PendingBatch const& pending, kernels::HostReads& reads);
  // Finds the rows that this rank owns, and ends what begin() has begun. REQUIRES: the reads are done.
  void wait_end(PendingBatch& pending);
  // Both.
  void wait_route(PendingBatch& pending);

 private:
  // The parts of a batch with rows that are away from their homes, and the lists of these parts.
  struct ReroutedParts {
    std::vector<std::size_t> parts;                      // their numbers in the batch, by table
    std::vector<kernels::ListRows::RowRange> rows;       // of each
    Array<Key> keys;                                     // of the rows
    Array<std::uint32_t> rows_at, owners, order, items;  // rows_at: positions
    std::vector<Rank> homes;                             // of each list of routed rows
    Array<std::uint32_t> first_there, differ_there, wrong_there;
    std::vector<std::uint32_t> first;                         // where each list begins
    std::vector<std::uint32_t> differ;                        // see kernels::ListRows
    std::vector<std::uint32_t> wrong;                         // see kernels::ReadRoutes
    std::shared_ptr<Array<std::uint32_t> const> positions{};  // of the items of all lists

    // Returns the positions of some lists of a part.
    PositionList lists(std::size_t part, std::uint32_t begin, std::uint32_t count) const;
  };
  void read_routes(PendingBatch const& pending, ReroutedParts& rerouted);
  void set_lists(PendingBatch& pending, ReroutedParts const& rerouted);
  void wait_list_answers(PendingBatch& pending, ReroutedParts const& rerouted);
  void wait_find_owned(PendingBatch const& pending, ReroutedParts const& rerouted);
  RankLists rank_lists(ReroutedParts const& rerouted, std::size_t part, std::uint32_t list) const;
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(state_.ranks); }
  std::uint32_t lists_of_part() const { return kernels::lists_of_part(ranks()); }

  RoundState& state_;
  ReroutedParts begun_;  // from begin() to wait_end()
};

}  // namespace gpups::cache
