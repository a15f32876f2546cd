// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/collectives.hpp"

#include <fmt/core.h>

#include <utility>

#include "comm/base/peer_error.hpp"
#include "comm/base/serialization.hpp"
#include "gpups/error.hpp"

namespace gpups::comm {

Collectives::Collectives(Rank me, int ranks, CollectiveTransport& transport, std::uint64_t ahead_max)
    : me_(me),
      ranks_(ranks),
      transport_(transport),
      ahead_max_(ahead_max),
      announced_(static_cast<std::size_t>(ranks)) {}

Collectives::Entry& Collectives::entry_of(std::uint64_t sequence_number) {
  Entry& entry = ops_[sequence_number];
  if (entry.op == nullptr) {
    entry.op = std::make_shared<CollectiveOp>(me_, ranks_, unknown_, transport_, sequence_number,
                                              [this](CollectiveOp&) { end_finished(); });
  }
  return entry;
}

void Collectives::begin(std::shared_ptr<CollectiveTask> const& collective, Stream const& stream) {
  Entry& entry = entry_of(started_++);
  entry.collective = collective;
  ++ops_in_flight_;
  if (!stream.device().is_host()) ++on_device_;
  entry.op->use(stream);
  entry.op->stream().after(collective->input_ready);
  entry.op->begin(collective->signature(),
                  [collective](Communicator& comm) { return collective->run(comm, collective); });
}

std::size_t Collectives::on_header(Rank from, std::uint64_t sequence_number, std::string_view text) {
  CollectiveHeader header;
  try {
    header = decode_header(text);
  } catch (SerializationError const& error) {
    throw PeerError(from, fmt::format("rank {} sent an invalid header of a collective: {} (none of its messages can be "
                                      "trusted): check that all ranks run the same version",
                                      number(from), error.what()));
  }
  auto& next = announced_[number(from)];
  bool const new_run = header.signature.has_value();
  bool const possible = from != me_ && (new_run ? sequence_number == next && next < started_ + ahead_max_
                                                : sequence_number < next && ops_.contains(sequence_number));
  if (!possible) {
    throw PeerError(
        from, fmt::format("rank {} {} allreduce {} too early or out of order: its next one is {}, and {} is "
                          "the next of rank {} (all ranks must start the same collectives in the same "
                          "order): check that all ranks run the same program and configuration",
                          number(from), new_run ? "started" : "sent a message of", sequence_number, next, started_,
                          number(me_)));
  }
  if (new_run) ++next;
  auto const op = entry_of(sequence_number).op;
  std::size_t const is_inline = header.message ? header.message->bytes.size() : 0;
  op->on_header(from, std::move(header));
  return is_inline;
}

void Collectives::end(OpMap::iterator which) {
  auto const entry = std::move(which->second);
  ops_.erase(which);
  --ops_in_flight_;
  if (!entry.op->stream().device().is_host()) --on_device_;
  entry.collective->ended = entry.op->stream().record();
  entry.collective->done = true;
}

// Looks at all ops, because one may have ended by link costs that another one has measured.
void Collectives::end_finished() {
  for (auto next = ops_.begin(); next != ops_.end();) {
    auto const here = next++;
    if (here->second.collective != nullptr && here->second.op->finished()) end(here);
  }
}

bool Collectives::progress() {
  if (on_device_ == 0) return false;
  std::vector<std::shared_ptr<CollectiveOp>> ops;
  for (auto const& [sequence_number, entry] : ops_) ops.push_back(entry.op);
  bool awaits = false;
  for (auto const& op : ops) awaits |= op->progress();
  return awaits;
}

void Collectives::closed_by(Rank peer) {
  for (auto const& [sequence_number, entry] : ops_) {
    if (entry.collective != nullptr && !entry.op->has_signature_of(peer)) throw PeerLost(peer, "");
  }
}

PendingPeers Collectives::pending_peers() const {
  for (auto const& [sequence_number, entry] : ops_) {
    if (entry.collective == nullptr) continue;
    return {entry.op->pending_peers(),
            fmt::format("the sums of {} {}", name_of(entry.op->operation()), sequence_number)};
  }
  return {};
}

std::string Collectives::unmatched_call(Rank peer) const {
  for (auto const& [sequence_number, entry] : ops_) {
    if (entry.collective == nullptr && entry.op->has_signature_of(peer)) {
      return fmt::format("{} {}, which {}", name_of(entry.op->signature_of(peer).operation), sequence_number,
                         peer_text(describe(entry.op->signature_of(peer))));
    }
  }
  return {};
}

}  // namespace gpups::comm
