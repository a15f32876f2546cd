// SPDX-License-Identifier: Apache-2.0
// Late fetches, for batches that were announced too late for the refreshes of a round. Owners answer as soon as the
// step before the batch is applied.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cache/protocol/intent_exchange.hpp"
#include "cache/protocol/round_state.hpp"
#include "cache/protocol/value_exchange.hpp"

namespace gpups::cache {

// For the thread that makes progress. Throws PeerError for invalid messages of peers.
class LateFetches {
 public:
  // arrived: called when the values of an owner have arrived, with the step of the batch. All references must outlive
  // this object.
  LateFetches(RoundState& state, IntentExchange& intents, ValueExchange& values, std::function<void(Clock)> arrived)
      : state_(state), intents_(intents), values_(values), arrived_(std::move(arrived)) {}

  // Requests the rows of a batch from their owners. Waits for the stream.
  void wait_fetch(PendingBatch& pending);
  // Handles a message of kind kLateFetch or kLateFetchReply.
  void on_message(Rank from, Message const& message);
  // Answers the requests that waited until the step before theirs is applied, which it now is.
  void wait_answer_waiting();

  // Returns true if `owner` has not answered a late fetch of this rank for `step`.
  bool lacks(Rank owner, Clock step) const;
  // Returns the number of keys that were fetched late.
  std::uint64_t keys() const { return keys_; }

 private:
  void wait_answer(ReaderBatchId const& of);

  RoundState& state_;
  IntentExchange& intents_;
  ValueExchange& values_;
  std::function<void(Clock)> arrived_;
  std::vector<ReaderBatchId> waiting_;  // requests that wait until the step before theirs is applied here
  std::uint64_t keys_ = 0;
};

}  // namespace gpups::cache
