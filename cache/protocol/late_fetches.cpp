// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/late_fetches.hpp"

#include <algorithm>
#include <utility>

namespace gpups::cache {

void LateFetches::wait_fetch(PendingBatch& pending) {
  pending.sent_to_owners = pending.is_late = true;
  Clock const clock = pending.batch->clock;
  for (Rank const owner : state_.owners_of(*pending.batch)) {
    pending.unanswered.push_back(owner);
    auto const outgoing = intents_.wait_encode_late(*pending.batch, owner);
    keys_ += outgoing.keys();
    state_.messenger.send(owner, {.kind = MessageKind::kLateFetch,
                                  .clock = clock,
                                  .intents = outgoing.intents,
                                  .key_bytes = outgoing.bytes->size()});
    intents_.send_keys(owner, outgoing, tag(Section::kLateFetchKeys, static_cast<std::uint64_t>(number(clock)), 0),
                       &Traffic::late_fetches);
  }
}

void LateFetches::wait_answer(ReaderBatchId const& of) {
  values_.wait_send(of, {.kind = MessageKind::kLateFetchReply, .clock = of.second}, Section::kLateFetchValues,
                    &Traffic::late_fetches);
}

void LateFetches::wait_answer_waiting() {
  for (auto const& of : std::exchange(waiting_, {})) wait_answer(of);
}

void LateFetches::on_message(Rank from, Message const& message) {
  if (from == state_.me) state_.throw_peer_error(from, "sent a message to itself");
  if (message.kind == MessageKind::kLateFetch) {
    if (message.intents.size() != 1 || message.intents[0].clock != message.clock) {
      state_.throw_peer_error(from, "sent a late fetch without its keys");
    }
    ReaderBatchId const id{from, message.clock};
    intents_.receive(from, message, true, [this, id] {
      if (state_.round.applied() >= id.second - 1) {
        wait_answer(id);
      } else {
        waiting_.push_back(id);
      }
    });
  } else {
    auto const found = state_.batches.find(message.clock);
    if (found == state_.batches.end() || std::erase(found->second.unanswered, from) == 0) {
      state_.throw_peer_error(from, "answered a late fetch that was not requested");
    }
    values_.receive(from, message.clock, Section::kLateFetchValues, message.sent,
                    [this, clock = message.clock] { arrived_(clock); });
  }
}

bool LateFetches::lacks(Rank owner, Clock step) const {
  auto const found = state_.batches.find(step);
  if (found == state_.batches.end()) return false;
  auto const& ranks = found->second.unanswered;
  return std::find(ranks.begin(), ranks.end(), owner) != ranks.end();
}

}  // namespace gpups::cache
