// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/round/outgoing_keys.hpp"

#include "kernels/base/check.hpp"
#include "kernels/index/sort_keys.hpp"

namespace gpups::cache {

Routes OutgoingRoutes::header() const {
  Routes header{.batches = routes};
  for (auto const& route : columns) header.bytes += route.memory->size();
  return header;
}

void send_keys(RoundState& state, Rank to, OutgoingKeys const& outgoing, std::uint64_t tag, TrafficKind kind) {
  state.messenger.count_compression(kind, outgoing.keys * sizeof(Key), outgoing.key_bytes());
  if (outgoing.plain.empty()) {
    return state.messenger.send_data(state.on_host, to, tag, outgoing.bytes->data(), outgoing.bytes->size(), kind,
                                     outgoing.bytes);
  }
  GPUPS_ASSERT(outgoing.bytes->empty());
  ListKeys body = outgoing.plain[0];
  if (outgoing.plain.size() > 1) {
    std::vector<View<Key const>> pieces;
    for (auto const& piece : outgoing.plain) pieces.push_back(piece.keys);
    auto const joined = std::make_shared<Array<Key>>(state.stream.device(), outgoing.keys);
    kernels::concatenate_keys(state.stream, pieces, *joined);
    body = {.keys = *joined, .memory = joined};
  }
  GPUPS_ASSERT(body.keys.size() == outgoing.keys);
  state.messenger.send_data(state.stream, to, tag, body.keys.data(), body.keys.bytes(), kind, body.memory);
}

void send_routes(RoundState& state, Rank to, OutgoingRoutes const& outgoing, std::uint64_t tag, TrafficKind kind) {
  GPUPS_ASSERT(outgoing.columns.size() == outgoing.routes.size() && outgoing.routes.size() <= 1);
  if (outgoing.columns.empty()) return state.messenger.send_data(state.stream, to, tag, nullptr, 0, kind, nullptr);
  auto const& memory = outgoing.columns[0].memory;
  state.messenger.send_data(state.stream, to, tag, memory->data(), memory->size(), kind, memory);
}

}  // namespace gpups::cache
