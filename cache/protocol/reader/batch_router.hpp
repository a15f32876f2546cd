// SPDX-License-Identifier: Apache-2.0
// The routes of this rank's batches: collects what homes say about the owners of rows, and makes the lists of each
// owner.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cache/protocol/round/round_state.hpp"
#include "cache/rows/table_shard.hpp"
#include "kernels/placement/reader_lists.hpp"
#include "kernels/rows/gather_elements.hpp"

namespace gpups::cache {

// For the thread that makes progress. Functions with `wait` in their names block until the stream is done. Throws
// PeerError for invalid routes of peers.
class BatchRouter {
 public:
  // `state` must outlive this object.
  explicit BatchRouter(RoundState& state) : state_(state) {}

  // Receives the routes of a message, and then calls `then`. clock: of the only batch that may have a route. tag: of
  // their section, which is kLateRoutes for a late batch, and else kRoutes.
  void receive(Rank home, Clock clock, Routes const& routes, std::uint64_t tag, std::function<void()> then);

  // Makes the lists of a batch, when its homes have sent their routes. Queued on the stream. reads: the host reads
  // their sizes with these.
  void begin(PendingBatch const& pending, kernels::HostReads& reads);
  // Sets these lists, and finds the rows that this rank owns; reads: as for begin(). REQUIRES: the reads of begin() are
  // done.
  void wait_set_lists(PendingBatch& pending, kernels::HostReads& reads);
  // Adds the owned rows that are new. REQUIRES: the reads of wait_set_lists() are done, and no rows were added since.
  void wait_add_owned(PendingBatch& pending);
  // All three.
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
  // The rows of a batch that this rank owns, and the keys and numbers of those that are not one after another in it.
  struct OwnedRows {
    TableShard::SoughtRows sought;
    std::vector<Array<Key>> keys;
    std::vector<Array<std::uint32_t>> ids;
    std::vector<kernels::ScatterElements> scatters;  // from `ids` to the batch
  };
  void read_routes(PendingBatch const& pending, ReroutedParts& rerouted);
  void set_lists(PendingBatch& pending, ReroutedParts const& rerouted);
  void wait_list_answers(PendingBatch& pending, ReroutedParts const& rerouted);
  void find_owned(PendingBatch const& pending, ReroutedParts const& rerouted, kernels::HostReads& reads);
  RankLists rank_lists(ReroutedParts const& rerouted, std::size_t part, std::uint32_t list) const;
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(state_.ranks); }
  std::uint32_t lists_of_part() const { return kernels::lists_of_part(ranks()); }

  RoundState& state_;
  ReroutedParts begun_;  // from begin() to wait_set_lists()
  OwnedRows owned_;      // from wait_set_lists() to wait_add_owned()
};

}  // namespace gpups::cache
