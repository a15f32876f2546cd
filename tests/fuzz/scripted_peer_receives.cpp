// SPDX-License-Identifier: Apache-2.0
// How a scripted peer handles the messages of rank 0.
#include "tests/fuzz/scripted_peer.hpp"

#include <algorithm>
#include <numeric>

#include "comm/collectives/allreduce/packed_integers.hpp"
#include "comm/collectives/collective_header.hpp"
#include "gpups/array.hpp"

namespace gpups::fuzz {

using cache::RowRequestKind;
using cache::Section;

bool ScriptedPeer::receive_all() {
  bool const before = wires_.progress();
  while (auto const received = wires_.receive_any()) {
    if (received->of_store) std::visit([this](auto const& message) { note(message); }, *received->of_store);
    if (received->of_collective && received->of_collective->signature) {
      sums_received_.push_back(received->of_collective->signature->elements);
    }
  }
  bool const after = wires_.progress();
  return before || after;
}

void ScriptedPeer::take_gradients(cache::GradientPhase const& message) {
  auto const step = static_cast<std::uint64_t>(number(message.clock));
  auto const mine = requested_.find(number(message.clock));
  std::size_t at = 0, end = 0;
  auto const add = [&](std::uint64_t bytes) {
    if (bytes > 0) end = at + bytes;
    at = cache::after_section(at, bytes);
  };
  for (std::size_t p = 0; p < message.gradients.size(); ++p) {
    auto const& [sums, occurrences, rows] = message.gradients[p];
    bool const is_compressed = mine != requested_.end() && p < mine->second.parts.size() &&
                               options_of(mine->second.parts[p].table).gradient_compression.enabled();
    if (is_compressed) {
      if (sums > 0) wires_.receive_data(tag(Section::kGradients, step, p), std::min(sums, kBytesMax));
    } else {
      add(sums);
    }
    add(occurrences);
  }
  if (end > 0) wires_.receive_data(tag(Section::kGradientBody, step, 0), std::min<std::uint64_t>(end, kBytesMax));
  for (std::size_t list = 0; list < message.flushed.size(); ++list) {
    wires_.receive_data(tag(Section::kFlushedKeys, step, list), std::min(message.flushed[list].key_bytes, kBytesMax));
    wires_.receive_data(tag(Section::kFlushedSums, step, list), message.flushed[list].bytes);
  }
}

void ScriptedPeer::note(cache::GradientPhase const& message) {
  received_in_ = number(message.clock);
  take_gradients(message);
  for (auto const& intent : message.intents.batches) note_intent(intent);
  auto const bytes = message.intents.key_bytes;
  if (bytes > 0) wires_.receive_data(tag(Section::kKeys, word(message.clock), 0), bytes);
}

void ScriptedPeer::note(cache::RefreshPhase const& message) {
  received_out_ = number(message.clock);
  auto const next = received_out_ + 1;
  if (message.parts > 0) take_values(mine_[next], Section::kValues, next, message.sent);
}

void ScriptedPeer::note(cache::LateFetch const& message) {
  note_intent(message.intent);
  if (message.key_bytes > 0) wires_.receive_data(tag(Section::kLateFetchKeys, message.id, 0), message.key_bytes);
  late_fetched_[number(message.intent.clock)] = true;
  unanswered_.push_back(message);
}

void ScriptedPeer::note(cache::LateFetchReply const& message) {
  auto const id = static_cast<std::int64_t>(message.id);
  take_values(mine_[number(message.clock)], Section::kLateFetchValues, id, message.sent);
}

void ScriptedPeer::note(cache::GatherPart const& message) {
  ++gathers_received_;
  call_ = message.call;
}

void ScriptedPeer::note(cache::RowRequestHeader const& message) {
  if (message.kind > RowRequestKind::kErase) return;  // the store of this test moves no rows
  wires_.receive_data(tag(Section::kRequestKeys, message.id, 0), message.keys * sizeof(Key));
  if (message.kind == RowRequestKind::kAssign) {
    wires_.receive_data(tag(Section::kRequestValues, message.id, 0), float_bytes(message.table, message.keys));
  }
  unanswered_.push_back(message);
}

void ScriptedPeer::note(cache::RowReplyHeader const& message) {
  if (message.kind != RowRequestKind::kLookup) return;
  auto const& request = requests_[message.id];
  if (request.keys == 0 || request.keys >= kBytesMax) return;
  wires_.receive_data(tag(Section::kRequestValues, message.id, kMyRank), float_bytes(request.table, request.keys));
  wires_.receive_data(tag(Section::kRequestFound, message.id, kMyRank), request.keys);
}

}  // namespace gpups::fuzz
