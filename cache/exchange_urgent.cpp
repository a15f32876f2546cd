// SPDX-License-Identifier: Apache-2.0
// Reads that were announced too late to come with the values of a round: asked for and answered at once.
#include <algorithm>

#include "cache/exchange.hpp"

namespace gpups::cache {

void Exchange::tell_urgently(Announced& announced) {
  announced.told = announced.urgent = true;
  for (Rank const owner : owners_of(*announced.batch)) {
    announced.unanswered.push_back(owner);
    Outgoing outgoing;
    name_keys(owner, *announced.batch, true, outgoing);
    for (auto const& part : outgoing.intents[0].parts) urgent_keys_ += part.keys;
    Clock const clock = announced.batch->clock;
    mail_.send(owner, {.kind = MessageKind::kUrgent,
                       .clock = clock,
                       .intents = outgoing.intents,
                       .key_bytes = outgoing.bytes->size()});
    send_keys(owner, outgoing, tag(Section::kUrgentKeys, static_cast<std::uint64_t>(number(clock)), 0),
              &Traffic::urgent);
  }
}

void Exchange::answer_urgent(UseId const& use) {
  auto const& [reader, clock] = use;
  send_values(reader, {.kind = MessageKind::kUrgentAnswer, .clock = clock}, Section::kUrgentValues, &Traffic::urgent);
}

bool Exchange::lacks(Rank owner, Clock step) const {
  auto const found = batches_.find(step);
  if (found == batches_.end()) return false;
  auto const& ranks = found->second.unanswered;
  return std::find(ranks.begin(), ranks.end(), owner) != ranks.end();
}

void Exchange::received(Rank from, Message const& message) {
  if (from == me_) refuse_peer(from, "sent a message to itself");
  if (message.kind == MessageKind::kUrgent) {
    if (message.intents.size() != 1 || message.intents[0].clock != message.clock)
      refuse_peer(from, "sent an urgent read without its keys");
    UseId const id{from, message.intents[0].clock};
    take_keys(from, message, true, [this, id] {
      if (round_.applied() >= id.second - 1) {
        answer_urgent(id);
      } else {
        unanswered_.push_back(id);
      }
    });
  } else {
    auto const found = batches_.find(message.clock);
    if (found == batches_.end() || std::erase(found->second.unanswered, from) == 0) {
      refuse_peer(from, "answered a read that nobody asked of it");
    }
    take_values(from, message.clock, Section::kUrgentValues, message.sent,
                [this, clock = message.clock] { check_ready(clock); });
  }
}

}  // namespace gpups::cache
