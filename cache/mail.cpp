// SPDX-License-Identifier: Apache-2.0
#include "cache/mail.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "comm/peer_text.hpp"
#include "comm/wire.hpp"
#include "gpups/error.hpp"
#include "kernels/check.hpp"

namespace gpups::cache {
namespace {

// What bulk data of a section counts as.
TrafficKind kind_of(Section section) {
  switch (section) {
    case Section::kGradients:
    case Section::kLateKeys:
    case Section::kLateSums:
    case Section::kSightings:
      return &ByKind::gradients;
    case Section::kValues:
      return &ByKind::refreshes;
    case Section::kKeys:
      return &ByKind::intents;
    case Section::kUrgentKeys:
    case Section::kUrgentValues:
      return &ByKind::urgent;
    case Section::kRequestKeys:
    case Section::kRequestValues:
    case Section::kRequestFound:
      return &ByKind::lookups;
    case Section::kCollective:
      return &ByKind::reductions;
  }
  return &ByKind::control;
}

}  // namespace

Mail::Mail(comm::Transport& transport, comm::Payload& payload)
    : transport_(transport),
      payload_(payload),
      outbox_(static_cast<std::size_t>(transport.size())),
      counters_(transport.size()) {}

void Mail::send(Rank to, Message const& message, TrafficKind kind, std::size_t bytes_of_kind) {
  auto body = encode(message);
  counters_.sent(to, &ByKind::control, body.size());
  if (bytes_of_kind > 0) counters_.sent_within(to, kind, bytes_of_kind);
  auto& waiting = outbox_[number(to)];
  if (!waiting.empty() || !transport_.send(to, body)) waiting.push_back(std::move(body));
}

void Mail::send_data(Stream& stream, Rank to, std::uint64_t tag, void const* data, std::size_t bytes, TrafficKind kind,
                     std::shared_ptr<void const> keep, std::function<void()> then) {
  if (bytes == 0) {
    if (then) then();
    return;
  }
  counters_.sent(to, kind, bytes);
  pending_.emplace(payload_.send(stream, to, tag, data, bytes), Pending{std::move(keep), std::move(then)});
}

void Mail::take_data(Stream& stream, Rank from, std::uint64_t tag, std::size_t bytes, comm::Payload::Where where,
                     std::function<void()> then) {
  if (bytes == 0) {
    then();
  } else {
    auto const count_then = [this, from, tag, bytes, then = std::move(then)] {
      counters_.received(from, kind_of(section_of(tag)), bytes);
      then();
    };
    pending_.emplace(payload_.receive(stream, from, tag, bytes, std::move(where)), Pending{nullptr, count_then});
  }
}

void Mail::sum_data(Stream& stream, std::uint64_t tag, View<float const> terms, View<float> sums, TrafficKind kind,
                    std::shared_ptr<void const> keep, std::function<void()> then) {
  if (terms.size() == 0) return then();
  auto const me = number(transport_.rank()), ranks = static_cast<std::uint32_t>(transport_.size());
  std::size_t const bytes = 2 * (terms.bytes() - terms.bytes() / ranks);
  counters_.sent(Rank{(me + 1) % ranks}, kind, bytes);
  auto const count_then = [this, kind, before = Rank{(me + ranks - 1) % ranks}, bytes, then = std::move(then)] {
    counters_.received(before, kind, bytes);
    then();
  };
  pending_.emplace(payload_.sum(stream, tag, terms, sums), Pending{std::move(keep), count_then});
}

std::optional<Mail::Received> Mail::receive() {
  auto const received = transport_.receive();
  if (!received) return std::nullopt;
  try {
    auto message = decode(received->body);
    check_fields(message);
    counters_.received(received->from, &ByKind::control, received->body.size());
    message.error = comm::peer_text(message.error);
    return Received{received->from, std::move(message)};
  } catch (comm::WireError const& error) {
    throw PeerError(received->from, fmt::format("rank {} sent what is not a message: {} (nothing it says can be "
                                                "trusted): check that all ranks run the same version",
                                                number(received->from), error.what()));
  }
}

bool Mail::progress() {
  bool moved = payload_.progress();
  for (std::size_t to = 0; to < outbox_.size(); ++to) {
    auto& waiting = outbox_[to];
    while (!waiting.empty() && transport_.send(Rank{static_cast<std::uint32_t>(to)}, waiting.front())) {
      waiting.pop_front();
      moved = true;
    }
  }
  auto const ended = payload_.take_done();
  for (comm::Transfer const transfer : ended) {
    auto const pending = pending_.extract(transfer);
    GPUPS_ASSERT(!pending.empty());
    if (pending.mapped().then) pending.mapped().then();  // may send and take more
  }
  return moved || !ended.empty();
}

bool Mail::idle() const {
  return pending_.empty() && std::all_of(outbox_.begin(), outbox_.end(), [](auto const& w) { return w.empty(); });
}

}  // namespace gpups::cache
