// SPDX-License-Identifier: Apache-2.0
// RoundExecutor: late fetches, for batches that were announced too late for the refreshes of a round. Owners answer as
// soon as the step before the batch is applied.
#include <algorithm>

#include "cache/protocol/round_executor.hpp"

namespace gpups::cache {

void RoundExecutor::fetch_late(PendingBatch& announced) {
  announced.sent_to_owners = announced.is_late = true;
  for (Rank const owner : owners_of(*announced.batch)) {
    announced.unanswered.push_back(owner);
    OutgoingIntents outgoing;
    encode_intent(owner, *announced.batch, true, outgoing);
    for (auto const& part : outgoing.intents[0].parts) late_keys_ += part.keys;
    Clock const clock = announced.batch->clock;
    messenger_.send(owner, {.kind = MessageKind::kLateFetch,
                            .clock = clock,
                            .intents = outgoing.intents,
                            .key_bytes = outgoing.bytes->size()});
    send_keys(owner, outgoing, tag(Section::kLateFetchKeys, static_cast<std::uint64_t>(number(clock)), 0),
              &Traffic::late_fetches);
  }
}

void RoundExecutor::reply_late(ReaderBatchId const& use) {
  auto const& [reader, clock] = use;
  send_values(reader, {.kind = MessageKind::kLateFetchReply, .clock = clock}, Section::kLateFetchValues,
              &Traffic::late_fetches);
}

bool RoundExecutor::lacks(Rank owner, Clock step) const {
  auto const found = batches_.find(step);
  if (found == batches_.end()) return false;
  auto const& ranks = found->second.unanswered;
  return std::find(ranks.begin(), ranks.end(), owner) != ranks.end();
}

void RoundExecutor::on_message(Rank from, Message const& message) {
  if (from == me_) throw_peer_error(from, "sent a message to itself");
  if (message.kind == MessageKind::kLateFetch) {
    if (message.intents.size() != 1 || message.intents[0].clock != message.clock)
      throw_peer_error(from, "sent a late fetch without its keys");
    ReaderBatchId const id{from, message.intents[0].clock};
    receive_intents(from, message, true, [this, id] {
      if (round_.applied() >= id.second - 1) {
        reply_late(id);
      } else {
        unanswered_.push_back(id);
      }
    });
  } else {
    auto const found = batches_.find(message.clock);
    if (found == batches_.end() || std::erase(found->second.unanswered, from) == 0) {
      throw_peer_error(from, "answered a late fetch that was not requested");
    }
    receive_refreshes(from, message.clock, Section::kLateFetchValues, message.sent,
                      [this, clock = message.clock] { check_ready(clock); });
  }
}

}  // namespace gpups::cache
