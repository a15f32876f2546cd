// SPDX-License-Identifier: Apache-2.0
#include "comm/progress/messenger.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "comm/base/peer_error.hpp"
#include "comm/transport/mailbox.hpp"
#include "gpups/error.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

constexpr std::size_t kNumberBytes = 1;  // of the channel number, in front of a body

bool is_closing(std::string_view message) { return message.size() == kNumberBytes; }

std::string message_of(ChannelId id, std::string_view body) {
  std::string message;
  message.reserve(kNumberBytes + body.size());
  message += static_cast<char>(id);
  message += body;
  return message;
}

std::string why_closed(ChannelId id, Rank rank) {
  if (id != ChannelId::kStore) return {};  // the rank has left
  return fmt::format("the Store of rank {} has ended", number(rank));
}

[[noreturn]] void reject(Rank from, std::string const& what) {
  throw PeerError(from, fmt::format("rank {} sent an invalid message: {} (none of its messages can be trusted): check "
                                    "that all ranks run the same version",
                                    number(from), what));
}

}  // namespace

Messenger::Messenger(Transport& transport, BulkTransport& bulk)
    : transport_(transport),
      bulk_(bulk),
      outbox_(static_cast<std::size_t>(transport.size())),
      counters_(transport.size()) {
  for (ChannelState& end : ends_) end.closed_by.resize(outbox_.size());
}

void Messenger::open(ChannelId id, Channel& channel) {
  ChannelState& end = end_of(id);
  GPUPS_ASSERT(end.channel == nullptr && !end.dropped);
  end.channel = &channel;
  for (auto const& [from, body] : std::exchange(end.early, {})) deliver(id, from, body);
}

void Messenger::drop(ChannelId id) {
  ChannelState& end = end_of(id);
  end.channel = nullptr;
  end.dropped = true;
  for (auto const& [from, body] : std::exchange(end.early, {})) {
    if (body.empty()) end.closed_by[number(from)] = true;
  }
  for (auto& [transfer, pending] : pending_) {
    if (pending.id == id) pending.then = {};
  }
}

void Messenger::close(ChannelId id) {
  drop(id);
  if (std::exchange(end_of(id).close_sent, true)) return;
  for (std::uint32_t to = 0; to < outbox_.size(); ++to) {
    if (Rank{to} != transport_.rank()) post(Rank{to}, message_of(id, {}));
  }
}

bool Messenger::closed_by_all() const {
  for (ChannelState const& end : ends_) {
    for (std::uint32_t from = 0; from < end.closed_by.size(); ++from) {
      if (Rank{from} != transport_.rank() && !end.closed_by[from]) return false;
    }
  }
  return true;
}

void Messenger::send(ChannelId id, Rank to, std::string const& body, TrafficKind kind, std::size_t bytes_of_kind) {
  GPUPS_ASSERT(!body.empty());
  if (end_of(id).closed_by[number(to)]) throw PeerLost(to, why_closed(id, to));
  post(to, message_of(id, body));
  if (bytes_of_kind > 0) counters_.sent_within(to, kind, bytes_of_kind);
}

void Messenger::post(Rank to, std::string message) {
  counters_.sent(to, &TrafficByKind::control, message.size());
  auto& waiting = outbox_[number(to)];
  if (!waiting.empty() || !try_send(to, message)) waiting.push_back(std::move(message));
}

bool Messenger::try_send(Rank to, std::string const& message) {
  try {
    return transport_.send(to, message);
  } catch (PeerLost const&) {
    if (is_closing(message)) return true;  // a rank that has left needs no such message
    throw;
  }
}

void Messenger::add(Transfer transfer, Pending pending) {
  ++end_of(pending.id).open_transfers;
  pending_.emplace(transfer, std::move(pending));
}

void Messenger::send_data(ChannelId id, Stream& stream, Rank to, std::uint64_t tag, void const* data, std::size_t bytes,
                          TrafficKind kind, std::shared_ptr<void const> keep, std::function<void()> then) {
  GPUPS_ASSERT(tag >> kTagBits == 0);
  if (bytes == 0) {
    if (then) then();
    return;
  }
  counters_.sent(to, kind, bytes);
  add(bulk_.send(stream, to, tag_of(id, tag), data, bytes),
      {.id = id, .to = to, .keep = std::move(keep), .then = std::move(then)});
}

void Messenger::receive_data(ChannelId id, Stream& stream, Rank from, std::uint64_t tag, std::size_t bytes,
                             TrafficKind kind, BulkTransport::Allocate where, std::function<void()> then) {
  GPUPS_ASSERT(tag >> kTagBits == 0);
  if (bytes == 0) return then();
  auto count_then = [this, from, kind, bytes, then = std::move(then)] {
    counters_.received(from, kind, bytes);
    then();
  };
  add(bulk_.receive(stream, from, tag_of(id, tag), bytes, std::move(where)),
      {.id = id, .to = {}, .keep = {}, .then = std::move(count_then)});
}

void Messenger::sum_data(ChannelId id, Stream& stream, std::uint64_t tag, FabricSum const& arrays, TrafficKind kind,
                         std::shared_ptr<void const> keep, std::function<void()> then) {
  GPUPS_ASSERT(tag >> kTagBits == 0);
  if (arrays.count == 0) return then();
  auto const me = number(transport_.rank()), ranks = static_cast<std::uint32_t>(transport_.size());
  std::size_t const bytes = 2 * (arrays.bytes() - arrays.bytes() / ranks);
  counters_.sent(Rank{(me + 1) % ranks}, kind, bytes);
  auto count_then = [this, kind, before = Rank{(me + ranks - 1) % ranks}, bytes, then = std::move(then)] {
    counters_.received(before, kind, bytes);
    then();
  };
  add(bulk_.sum(stream, tag_of(id, tag), arrays),
      {.id = id, .to = {}, .keep = std::move(keep), .then = std::move(count_then)});
}

bool Messenger::receive() {
  auto const received = transport_.receive();
  if (!received) return false;
  auto const& [from, message] = *received;
  if (message.empty() || static_cast<std::uint8_t>(message.front()) >= kChannels) {
    reject(from, "it belongs to no channel");
  }
  counters_.received(from, &TrafficByKind::control, message.size());
  auto const id = static_cast<ChannelId>(message.front());
  std::string_view const body = std::string_view(message).substr(kNumberBytes);
  ChannelState& end = end_of(id);
  if (end.closed_by[number(from)]) reject(from, "it belongs to a channel that the rank has closed");
  if (end.dropped) {
    if (body.empty()) end.closed_by[number(from)] = true;
    return true;
  }
  end.channel == nullptr ? keep_early(end, from, body) : deliver(id, from, body);
  return true;
}

// A valid sender soon waits for answers of this rank, so a limit is enough.
void Messenger::keep_early(ChannelState& end, Rank from, std::string_view body) {
  auto& [messages, bytes] = end.early_of[from];
  bool const too_many = messages == kQueuedMessagesMax || (messages > 0 && bytes + body.size() > kMessageBytesMax);
  if (too_many) {
    throw PeerError(from, fmt::format("rank {} sent too many messages to the Store of rank {} before that Store was "
                                      "created: check that all ranks run the same program and configuration",
                                      number(from), number(transport_.rank())));
  }
  ++messages;
  bytes += body.size();
  end.early.emplace_back(from, body);
}

void Messenger::deliver(ChannelId id, Rank from, std::string_view body) {
  ChannelState& end = end_of(id);
  if (!body.empty()) return end.channel->received(from, body);
  end.closed_by[number(from)] = true;
  for (auto& [transfer, pending] : pending_) {
    if (pending.id == id && pending.to == from && std::exchange(pending.is_owed, false)) --end.open_transfers;
  }
  end.channel->closed_by(from);
}

bool Messenger::progress() {
  bool moved = bulk_.progress();
  for (std::size_t to = 0; to < outbox_.size(); ++to) {
    auto& waiting = outbox_[to];
    while (!waiting.empty() && try_send(Rank{static_cast<std::uint32_t>(to)}, waiting.front())) {
      waiting.pop_front();
      moved = true;
    }
  }
  auto const ended = bulk_.take_done();
  for (Transfer const transfer : ended) {
    auto const node = pending_.extract(transfer);
    GPUPS_ASSERT(!node.empty());
    Pending const& pending = node.mapped();
    if (pending.is_owed) --end_of(pending.id).open_transfers;
    if (pending.then) pending.then();  // may start more transfers
  }
  return moved || !ended.empty();
}

bool Messenger::idle(ChannelId id) const {
  return end_of(id).open_transfers == 0 &&
         std::all_of(outbox_.begin(), outbox_.end(), [](auto const& waiting) { return waiting.empty(); });
}

bool Messenger::idle() const { return idle(ChannelId::kStore) && idle(ChannelId::kCollectives); }

void Messenger::drop_all() {
  pending_.clear();
  for (auto& waiting : outbox_) waiting.clear();
  for (ChannelState& end : ends_) end.open_transfers = 0;
}

}  // namespace gpups::comm
