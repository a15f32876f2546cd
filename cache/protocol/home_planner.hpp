// SPDX-License-Identifier: Apache-2.0
// A home's plan for the batches that ranks announce to it: which rank owns each row before the step of a batch and in
// it. Owners of rows that are away get the keys as forwards, and readers get routes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cache/placement/key_uses.hpp"
#include "cache/protocol/round_state.hpp"
#include "cache/wire/key_dictionary.hpp"
#include "gpups/store.hpp"

namespace gpups::cache {

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

  // The keys of a batch that one rank owns, by role and part. Roles without keys have no parts.
  using KeysByRole = std::array<std::vector<PartKeys>, kRowRoles>;
  // The rows of one batch with this home.
  struct Plan {
    Rank reader{};
    Clock clock{};
    KeysByUse<PartKeys> own;                // of the rows that this rank owns itself
    std::vector<RowOwners> owners{};        // by part: of each key of the intent
    std::map<Rank, KeysByRole> forwards{};  // by owner, without the reader
    bool any_away = false;                  // another rank owns some of the rows
  };

  // Adds a batch that is announced in time, for plan().
  void announce(Rank reader, Clock clock, std::vector<PartKeys> parts);
  // Decides where the rows of all batches of a step are, and queues forwards and routes for the next refresh phase.
  // Call it once for each step, two steps before.
  std::vector<Plan> plan(Clock clock);
  // Returns true if the step is planned: then late fetches for it can be planned, too.
  bool is_planned(Clock clock) const { return clock <= std::max(planned_, state_.round.clock() + 1); }
  // Finds the owners of the rows of a late fetch. REQUIRES: the step is planned.
  Plan plan_late(Rank reader, Clock clock, std::vector<PartKeys> const& parts) const;

  // Returns the most used rows of the last step whose batches were announced as far ahead as those of the step before.
  HotRows const& hot_rows() const { return hot_rows_; }

  // Return what is queued, by receiving rank, and clear it. wait_take_forwards() encodes the keys, with the
  // dictionaries of the owners.
  std::map<Rank, OutgoingForwards> wait_take_forwards();
  std::map<Rank, OutgoingRoutes> take_routes();

  // Encode a plan for a late fetch, which is not ordered with the rounds.
  static OutgoingForwards wait_encode_late(Stream& host, Plan const& plan, KeysByRole const& keys);
  OutgoingRoutes encode_route(Plan const& plan) const;

 private:
  struct AnnouncedBatch {
    Rank reader{};
    std::vector<PartKeys> parts;
  };
  struct QueuedForwards {
    Rank reader{};
    Clock clock{};
    KeysByRole keys;
  };

  void add_uses(Clock clock, AnnouncedBatch const& batch);
  void move_rows(Clock clock, bool is_used);
  bool sees_as_far(Clock clock);
  Plan make_plan(Rank reader, Clock clock, std::vector<PartKeys> const& parts, std::vector<RowOwners> owners) const;

  RoundState& state_;
  std::map<Clock, std::vector<AnnouncedBatch>> announced_;
  std::vector<KeyUses> uses_;  // by table
  HotRows hot_rows_{Store::kHotRowsMax};
  std::ptrdiff_t steps_ahead_ = 0;  // announced steps after the one that was planned last
  Clock planned_{-1};
  std::map<Rank, std::vector<QueuedForwards>> forwards_;  // by owner
  std::map<Rank, OutgoingRoutes> routes_;                 // by reader
  std::map<std::pair<Rank, TableId>, KeyEncoder> encoders_;
};

}  // namespace gpups::cache
