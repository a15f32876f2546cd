// SPDX-License-Identifier: Apache-2.0
// A home's plan for the batches that ranks announce to it: which rank owns each row. Owners of rows that are away get
// the keys as forwards, and readers get routes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cache/protocol/round_state.hpp"
#include "cache/wire/key_dictionary.hpp"

namespace gpups::cache {

// The keys of one part of a batch, in the order of its list.
struct PartKeys {
  TableId table{};
  std::vector<Key> keys;
};

// Forwards to one owner, with their keys in the format of key_coding.hpp.
struct OutgoingForwards {
  std::vector<Forward> forwards{};
  std::shared_ptr<std::vector<std::uint8_t>> bytes = std::make_shared<std::vector<std::uint8_t>>();
};

// Routes to one reader, in the format of route_coding.hpp.
struct OutgoingRoutes {
  std::vector<Route> routes{};
  std::shared_ptr<std::vector<std::uint8_t>> bytes = std::make_shared<std::vector<std::uint8_t>>();
};

// For the thread that makes progress. Functions with `wait` in their names block until the host stream is done.
class HomePlanner {
 public:
  // `state` must outlive this object.
  explicit HomePlanner(RoundState& state) : state_(state) {}

  // The rows of one batch with this home. `here` has the keys of the rows that this rank owns, by part.
  struct Plan {
    std::vector<PartKeys> here;
    std::vector<std::vector<Rank>> owners;           // by part: of each key of the list
    std::map<Rank, std::vector<PartKeys>> forwards;  // by owner, without the reader: by part, ascending
    bool any_away = false;
  };
  // Decides where the rows of a reader's batch are read. Returns nullopt if this rank owns all of them.
  std::optional<Plan> plan(Rank reader, std::vector<PartKeys> const& parts);

  // Queues a plan for the next refresh phase.
  void queue(Rank reader, Clock clock, Plan plan);
  // Return what is queued, by receiving rank, and clear it. wait_take_forwards() encodes the keys, with the
  // dictionaries of the owners.
  std::map<Rank, OutgoingForwards> wait_take_forwards();
  std::map<Rank, OutgoingRoutes> take_routes();

  // Encode a plan for a late fetch, which is not ordered with the rounds.
  static OutgoingForwards wait_encode_late(Stream& host, Rank reader, Clock clock, std::vector<PartKeys> const& parts);
  OutgoingRoutes encode_route(Clock clock, Plan const& plan) const;

 private:
  struct QueuedForward {
    Rank reader{};
    Clock clock{};
    std::vector<PartKeys> parts;
  };

  RoundState& state_;
  std::map<Rank, std::vector<QueuedForward>> forwards_;  // by owner
  std::map<Rank, OutgoingRoutes> routes_;                // by reader
  std::map<std::pair<Rank, TableId>, KeyEncoder> encoders_;
};

}  // namespace gpups::cache
