// SPDX-License-Identifier: Apache-2.0
// How a scripted peer handles the messages of rank 0.
#include "tests/fuzz/scripted_peer.hpp"

#include <algorithm>
#include <numeric>

#include "comm/collectives/allreduce/packed_integers.hpp"
#include "comm/collectives/collective_header.hpp"
#include "gpups/array.hpp"

namespace gpups::fuzz {

using cache::Intent;
using cache::Message;
using cache::MessageKind;
using cache::Section;

bool ScriptedPeer::receive_all() {
  bool const before = wires_.progress();
  while (auto const received = wires_.receive_any()) {
    if (received->of_store) note(*received->of_store);
    if (received->of_collective && received->of_collective->signature) {
      sums_received_.push_back(received->of_collective->signature->elements);
    }
  }
  bool const after = wires_.progress();
  return before || after;
}

void ScriptedPeer::take_gradients(Message const& message) {
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

void ScriptedPeer::note_intents(Message const& message, std::uint64_t keys) {
  for (auto const& intent : message.intents) requested_[number(intent.clock)] = intent;
  if (message.key_bytes > 0) wires_.receive_data(keys, message.key_bytes);
}

void ScriptedPeer::note(Message const& m) {
  auto const clock = number(m.clock);
  switch (m.kind) {
    case MessageKind::kGradientPhase:
      received_in_ = clock;
      take_gradients(m);
      return note_intents(m, tag(Section::kKeys, word(m.clock), 0));
    case MessageKind::kRefreshPhase:
      received_out_ = clock;
      if (m.parts > 0) take_values(mine_[clock + 1], Section::kValues, clock + 1, m.sent);
      return;
    case MessageKind::kLateFetch:
      note_intents(m, tag(Section::kLateFetchKeys, m.id, 0));
      late_fetched_[clock] = true;
      return unanswered_.push_back(m);
    case MessageKind::kLateFetchReply:
      return take_values(mine_[clock], Section::kLateFetchValues, static_cast<std::int64_t>(m.id), m.sent);
    case MessageKind::kGather:
      ++gathers_received_;
      call_ = m.call;
      return;
    case MessageKind::kLookup:
    case MessageKind::kAssign:
    case MessageKind::kErase:
      wires_.receive_data(tag(Section::kRequestKeys, m.id, 0), m.keys * sizeof(Key));
      if (m.kind == MessageKind::kAssign) {
        wires_.receive_data(tag(Section::kRequestValues, m.id, 0), float_bytes(m.table, m.keys));
      }
      return unanswered_.push_back(m);
    case MessageKind::kLookupReply: {
      auto const& request = requests_[m.id];
      if (request.keys == 0 || request.keys >= kBytesMax) return;
      wires_.receive_data(tag(Section::kRequestValues, m.id, kMyRank), float_bytes(request.table, request.keys));
      return wires_.receive_data(tag(Section::kRequestFound, m.id, kMyRank), request.keys);
    }
    case MessageKind::kAssignReply:
    case MessageKind::kEraseReply:
    case MessageKind::kSchema:
    default:  // the store of this test moves no rows
      return;
  }
}

}  // namespace gpups::fuzz
