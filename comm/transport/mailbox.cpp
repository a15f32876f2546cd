// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/mailbox.hpp"

#include <utility>

#include "comm/peer_lost.hpp"

namespace gpups::comm {

bool Mailbox::reserve(Rank from, std::size_t bytes) {
  std::lock_guard lock(mutex_);
  if (closed_) throw *closed_;
  Room& room = used_[number(from)];
  room.refused = room.messages == kQueuedMessagesMax || (room.messages > 0 && room.bytes + bytes > kMessageBytesMax);
  if (room.refused) return false;
  ++room.messages;
  room.bytes += bytes;
  return true;
}

void Mailbox::deliver(Message message) {
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    ++used_[number(message.from)].delivered;
    messages_.push_back(std::move(message));
  }
  wake();
}

std::optional<Message> Mailbox::receive(std::optional<Rank>& room_for) {
  std::lock_guard lock(mutex_);
  for (Loss const& loss : losses_) {
    if (used_[number(loss.teller)].delivered == 0) throw loss.error;
  }
  if (messages_.empty()) return std::nullopt;
  std::optional<Message> message(std::move(messages_.front()));
  messages_.pop_front();
  Room& room = used_[number(message->from)];
  --room.messages;
  --room.delivered;
  room.bytes -= message->body.size();
  if (std::exchange(room.refused, false)) room_for = message->from;
  return message;
}

bool Mailbox::close(PeerLost const& error) {
  std::lock_guard lock(mutex_);
  bool const known = closed_ && (error.why().empty() || !closed_->why().empty());
  if (known) return false;
  closed_.emplace(error);
  messages_.clear();
  return true;
}

bool Mailbox::closed() {
  std::lock_guard lock(mutex_);
  return closed_.has_value();
}

void Mailbox::lost(Rank teller, PeerLost const& error) {
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    losses_.push_back({teller, error});
  }
  wake();
}

}  // namespace gpups::comm
