// SPDX-License-Identifier: Apache-2.0
// The intents of this rank's batches: announces their keys to the homes.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "cache/protocol/round/outgoing_keys.hpp"
#include "cache/protocol/round/round_state.hpp"
#include "cache/wire/key_dictionary.hpp"

namespace gpups::cache {

// For the thread that makes progress. Functions with `wait` in their names block until the stream is done.
class IntentExchange {
 public:
  // `state` must outlive this object.
  explicit IntentExchange(RoundState& state) : state_(state) {}

  // Queues the intents of a batch for the next gradient phase, and sets PreparedPart::reads. Waits only if keys are
  // encoded.
  void wait_queue(PreparedBatch::Impl& batch);
  // Returns the keys of this home, by part; for a batch whose rows may move. Sets PreparedPart::own_order. Queued on
  // the stream.
  std::vector<ListKeys> own_keys(PreparedBatch::Impl& batch);
  // Returns the intents of a late fetch by home, which are not queued. Late fetches do not use the key dictionary,
  // because they are not ordered with the rounds.
  std::map<Rank, OutgoingIntents> wait_encode_late(PreparedBatch::Impl& batch);
  // Takes the queued intents for a home.
  OutgoingIntents take(Rank home);

  // Encodes keys of batches that were announced before. keys: ascending.
  void encode_known(Rank home, TableId table, View<Key const> keys, std::vector<std::uint8_t>& wire);

 private:
  // The keys of a batch for one home: of all parts together, and by part.
  struct SortedKeysOfHome {
    ListKeys all;
    std::vector<ListKeys> parts;
  };
  std::map<Rank, SortedKeysOfHome> sort(PreparedBatch::Impl& batch);
  void wait_encode(PreparedBatch::Impl& batch, bool is_late, std::map<Rank, OutgoingIntents>& outgoing);
  KeyEncoder& encoder_for(Rank home, TableId table);

  RoundState& state_;
  std::map<Rank, OutgoingIntents> outgoing_;  // by home: sent with the next gradient phase
  std::map<std::pair<Rank, TableId>, KeyEncoder> encoders_;
};

}  // namespace gpups::cache
