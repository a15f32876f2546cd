// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/mailbox.hpp"

#include <utility>

#include "comm/base/peer_error.hpp"

namespace gpups::comm {

bool Mailbox::reserve(Rank from, std::size_t bytes) {
  std::lock_guard lock(mutex_);
  if (closed_) throw *closed_;
  Credit& room = credits_[number(from)];
  room.rejected = room.messages == kQueuedMessagesMax || (room.messages > 0 && room.bytes + bytes > kMessageBytesMax);
  if (room.rejected) return false;
  ++room.messages;
  room.bytes += bytes;
  return true;
}

void Mailbox::deliver(TransportMessage message) {
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    ++credits_[number(message.from)].delivered;
    messages_.push_back(std::move(message));
  }
  wake();
}

std::optional<TransportMessage> Mailbox::receive(std::optional<Rank>& sender_with_credit) {
  std::lock_guard lock(mutex_);
  for (Failure const& loss : failures_) {
    if (credits_[number(loss.reporter)].delivered == 0) throw loss.error;
  }
  if (messages_.empty()) return std::nullopt;
  std::optional<TransportMessage> message(std::move(messages_.front()));
  messages_.pop_front();
  Credit& room = credits_[number(message->from)];
  --room.messages;
  --room.delivered;
  room.bytes -= message->body.size();
  if (std::exchange(room.rejected, false)) sender_with_credit = message->from;
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

void Mailbox::lost(Rank reporter, PeerLost const& error) {
  {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    failures_.push_back({reporter, error});
  }
  wake();
}

}  // namespace gpups::comm
