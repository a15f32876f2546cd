// SPDX-License-Identifier: Apache-2.0
// Late fetches, for batches that were announced too late for the refreshes of a round. The reader requests the rows
// from their homes at once. A home answers for the rows that it owns, and forwards the others to their owners, which
// answer too. Each answers as soon as the step before the batch is applied there or, if rows move, complete.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "cache/protocol/exchange/value_exchange.hpp"
#include "cache/protocol/owner/announced_keys.hpp"
#include "cache/protocol/owner/row_finder.hpp"
#include "cache/protocol/reader/batch_router.hpp"
#include "cache/protocol/reader/intent_exchange.hpp"
#include "cache/protocol/round/round_state.hpp"

namespace gpups::cache {

// For the thread that makes progress. Throws PeerError for invalid messages of peers.
class LateFetches {
 public:
  // arrived: called when all values of a batch have arrived, with its step. All references must outlive this object.
  LateFetches(RoundState& state, IntentExchange& intents, AnnouncedKeys& announced, HomePlanner& planner,
              BatchRouter& router, RowFinder& finder, ValueExchange& values, std::function<void(Clock)> arrived)
      : state_(state),
        intents_(intents),
        announced_(announced),
        planner_(planner),
        router_(router),
        finder_(finder),
        values_(values),
        arrived_(std::move(arrived)) {}

  // Requests the rows of a batch. own: the keys with this home, by part, in the order of PreparedPart::own_order; empty
  // if no row moves or has moved. Waits for the stream.
  void wait_fetch(PendingBatch& pending, std::vector<PartKeys> const& own);
  // Handle the messages of other ranks.
  void on_message(Rank from, LateFetch const& message);
  void on_message(Rank home, LateForward const& message);
  void on_message(Rank from, LateFetchReply const& message);
  // Continues with requests that waited for a step to be planned, applied or complete. Call it after each.
  void wait_continue();

  // Returns the ranks from which this rank waits for an answer for `step`.
  std::vector<Rank> pending_peers(Clock step) const;
  // Returns the number of keys that were fetched late.
  std::uint64_t keys() const { return keys_; }

 private:
  // A request of this rank for the rows of one home.
  struct Fetch {
    Clock clock{};
    Rank home{};
    bool routed = false;          // the home has answered
    std::set<Rank> unanswered{};  // ranks that must answer, as far as they are known
    std::set<Rank> answered{};    // ranks whose answers, but perhaps not their data, have arrived
  };
  // An answer that cannot be read before all homes of the batch have sent their routes.
  struct Answer {
    Rank from{};
    std::uint64_t id = 0;
    std::vector<std::uint64_t> sent;
  };
  // A late fetch of another rank that this rank must answer. routes: only if it is the home.
  struct LateRequest {
    ReaderBatchId of;
    Rank home{};
    std::uint64_t id = 0;
    OutgoingRoutes routes{};
  };

  // Runs a task now and, while it returns false, again in wait_continue().
  void run_or_keep(std::function<bool()> task);
  void wait_plan_own(Clock clock, std::vector<PartKeys> const& own);
  void forward(std::uint64_t id, HomePlanner::LatePlan const& plan);
  void answer_in_time(LateRequest const& request);
  void wait_expect_owners(Fetch& fetch, PendingBatch const& pending);
  void finish_one(Clock clock);
  bool try_read(Clock clock);
  void read(Answer const& answer);

  RoundState& state_;
  IntentExchange& intents_;
  AnnouncedKeys& announced_;
  HomePlanner& planner_;
  BatchRouter& router_;
  RowFinder& finder_;
  ValueExchange& values_;
  std::function<void(Clock)> arrived_;
  std::map<std::uint64_t, Fetch> fetches_;  // by number
  std::map<Clock, std::vector<Answer>> answers_;
  std::vector<std::function<bool()>> waiting_;
  // Steps of late batches of this rank whose rows with this home are not planned, and whose routes are not read.
  std::set<Clock> unplanned_, unread_;
  std::uint64_t next_fetch_ = 0, next_forward_ = 0;
  std::uint64_t keys_ = 0;
};

}  // namespace gpups::cache
