// SPDX-License-Identifier: Apache-2.0
// Plans, as the home of rows, where the rows of announced batches are: which rank owns each before the step of a batch
// and in it. Owners of rows that are away get the keys as forwards, and readers get routes. Everything that there is
// for each key is a column on the device of the store; the host sees the numbers of rows in lists.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cache/placement/announced_uses.hpp"
#include "cache/placement/hot_rows.hpp"
#include "cache/protocol/round/outgoing_keys.hpp"
#include "cache/protocol/round/round_state.hpp"
#include "cache/wire/key_dictionary.hpp"

namespace gpups::cache {

// For the thread that makes progress. Functions with `wait` in their names block until the stream is done.
class HomePlanner {
 public:
  // `state` must outlive this object.
  explicit HomePlanner(RoundState& state) : state_(state) {}

  // The rows of one batch with this home.
  struct Plan {
    Rank reader{};
    KeysByRole own;                   // of the rows that this rank owns itself
    std::optional<BatchRoute> route;  // if another rank owns some of the rows, before the step or in it
  };

  // Sets the number of steps whose users the policy sees. Call it before the first batch.
  void set_window(std::int64_t steps) { uses_ = AnnouncedUses(steps); }
  // Adds a batch that is announced in time, for wait_plan() or begin(). For wait_plan(), the keys of each part are
  // ascending.
  void announce(Rank reader, Clock clock, std::vector<ListKeys> parts);
  // Looks at the batches of a step, of which all that are announced in time have arrived. Queued on the stream. reads:
  // the host reads the numbers of rows with these.
  void list_keys(Clock clock, kernels::HostReads& reads) {
    uses_.list_keys(state_.stream, state_.tables.size(), clock, reads);
  }
  // Sets that this step is to be planned; wait_plan() may follow while ranks train the step before it.
  void expect(Clock clock) { expected_ = clock; }
  // Decides where the rows of all batches of the expected step are, and queues forwards and routes for the next
  // gradient phase. Returns what concerns this rank: as an owner, and as the reader of its own batch. Sees the batches
  // that were announced in the gradient phases up to two steps before.
  std::vector<Plan> wait_plan();
  std::optional<Clock> expected() const { return expected_; }
  // Returns true if the step is planned: then late fetches for it can be planned, too.
  bool is_planned(Clock clock) const {
    Clock const known = state_.round.announces_next() ? state_.round.clock() : state_.round.clock() + 1;
    return clock <= std::max(planned_, known) && !(expected_ && clock >= *expected_);
  }

  // The rows of a late fetch, which do not move.
  struct LatePlan {
    Rank reader{};
    Clock clock{};
    std::vector<PartKeys> own;                       // of the rows that this rank owns itself
    std::map<Rank, std::vector<PartKeys>> forwards;  // by owner, without the reader
    std::optional<BatchRoute> route{};               // if another rank owns some of the rows
  };
  // Finds the owners of the rows of a late fetch. REQUIRES: the step is planned.
  LatePlan wait_plan_late(Rank reader, Clock clock, std::vector<PartKeys> const& parts) const;

  // Begins a step that is not planned, because all rows are at their homes. All batches that are announced in time have
  // arrived.
  void begin(Clock step);
  // See HotStep.
  std::vector<RankedRow> wait_hottest_rows(std::size_t most) const;

  // Return what is queued, by receiving rank, and clear it.
  std::map<Rank, OutgoingForwards> wait_take_forwards();
  std::map<Rank, OutgoingRoutes> take_routes() { return std::exchange(routes_, {}); }

 private:
  // The lists of all owners, for all batches of a step.
  struct StepLists {
    std::vector<std::uint32_t> of_batch;  // the first list of each batch, of an owner
    std::uint32_t of_owner = 0;           // lists of an owner
    std::vector<std::uint32_t> first;     // where each list begins
    std::vector<std::uint32_t> away;      // see kernels::ListUses
    Array<std::uint32_t> placed;
    ListKeys keys;  // of all lists

    View<Key const> of(std::uint32_t first_list, std::uint32_t lists) const {
      return keys.keys.slice(first[first_list], first[first_list + lists] - first[first_list]);
    }
  };
  std::vector<kernels::RowsOfTable> rows_of_tables(UsedRows const& used) const;
  StepLists wait_list(StepUses const& step, UsedRows const& used, Clock clock, kernels::HostReads& reads);
  KeysByRole keys_of(StepUses const& step, StepLists const& lists, std::size_t batch, Rank owner) const;
  void queue_forwards(StepUses const& step, StepLists const& lists, Clock clock);
  std::vector<std::optional<BatchRoute>> write_routes(StepUses const& step, StepLists const& lists, Clock clock);

  RoundState& state_;
  AnnouncedUses uses_;
  HotStep hot_step_;
  Clock planned_{-1};
  std::optional<Clock> expected_;
  std::map<Rank, OutgoingForwards> forwards_;  // by owner, with plain keys
  std::map<Rank, OutgoingRoutes> routes_;      // by reader
  std::map<std::pair<Rank, TableId>, KeyEncoder> encoders_;
};

// Returns the route of a late fetch. Its rows have the same owners before the step and in it.
Route late_route(Clock clock, BatchRoute const& route);
// Encodes the keys of a late fetch that an owner gets. Late fetches do not use the key dictionary, because they are not
// ordered with the rounds.
OutgoingForwards encode_late(HomePlanner::LatePlan const& plan, std::vector<PartKeys> const& keys);

}  // namespace gpups::cache
