// SPDX-License-Identifier: Apache-2.0
// The routes of this rank's batches: collects what homes say about the owners of rows, and makes the lists of each
// owner.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "cache/protocol/round_state.hpp"

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
  void wait_read(Rank home, std::vector<Route> const& routes, std::string_view bytes);
  // The keys of a part and the positions of its intents, on the host.
  struct IntentKeys {
    std::vector<std::uint32_t> positions;
    std::vector<Key> keys;
  };
  // A row of a part, with its owners.
  struct RoutedRow {
    std::uint32_t position;
    Rank home, before, in_step;
  };
  // Positions in the order of a list, by rank.
  using HostLists = std::vector<std::vector<std::uint32_t>>;
  bool is_rerouted(PendingBatch const& pending, std::size_t part) const;
  std::vector<RoutedRow> routed_rows(PendingBatch const& pending, std::size_t part, IntentKeys const& intent) const;
  Array<std::uint32_t> upload_list(std::vector<std::uint32_t> const& positions);
  RankLists upload(HostLists const& lists);
  Array<std::uint32_t> make_lists(PendingBatch& pending, std::size_t part, IntentKeys const& intent,
                                  std::set<Key>& arrived);
  void wait_find_owned(PendingBatch const& pending, std::map<std::size_t, Array<std::uint32_t>> const& owned);

  RoundState& state_;
};

}  // namespace gpups::cache
