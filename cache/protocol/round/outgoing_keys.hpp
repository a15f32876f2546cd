// SPDX-License-Identifier: Apache-2.0
// Keys that are sent with a message: from the device of the store as they are, or as bytes from the host.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cache/protocol/round/round_state.hpp"

namespace gpups::cache {

// The keys of some lists, one list after another.
struct OutgoingKeys {
  std::vector<ListKeys> plain{};  // their pieces; or:
  std::shared_ptr<std::vector<std::uint8_t>> bytes = std::make_shared<std::vector<std::uint8_t>>();
  std::uint64_t keys = 0;

  std::uint64_t key_bytes() const { return plain.empty() ? bytes->size() : keys * sizeof(Key); }
};

// Intents for one home, with their keys.
struct OutgoingIntents : OutgoingKeys {
  std::vector<Intent> intents{};

  Intents header() const { return {intents, key_bytes()}; }
};
// Forwards to one owner.
struct OutgoingForwards : OutgoingKeys {
  std::vector<Forward> forwards{};

  Forwards header() const { return {forwards, key_bytes()}; }
};
// Routes to one reader.
struct OutgoingRoutes {
  std::vector<Route> routes{};
  std::vector<BatchRoute> columns{};  // of each route

  Routes header() const;
};

// Send what has been announced by a message. At most one route is sent at a time.
void send_keys(RoundState& state, Rank to, OutgoingKeys const& keys, std::uint64_t tag, TrafficKind kind);
void send_routes(RoundState& state, Rank to, OutgoingRoutes const& routes, std::uint64_t tag, TrafficKind kind);

}  // namespace gpups::cache
