// SPDX-License-Identifier: Apache-2.0
// The intents of batches: announces the keys of this rank's batches to their owners, and finds the rows of the keys
// that other ranks announce.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/protocol/round_state.hpp"
#include "cache/wire/key_dictionary.hpp"

namespace gpups::cache {

// Intents for one owner, with their encoded keys.
struct OutgoingIntents {
  std::vector<Intent> intents{};
  // In the format of key_coding.hpp.
  std::shared_ptr<std::vector<std::uint8_t>> bytes = std::make_shared<std::vector<std::uint8_t>>();

  std::uint64_t keys() const;
};

// For the thread that makes progress. Functions with `wait` in their names block until the stream is done. Throws
// PeerError for invalid intents of peers.
class IntentExchange {
 public:
  // `state` must outlive this object.
  explicit IntentExchange(RoundState& state) : state_(state) {}

  // Queues the intents of a batch for the next gradient phase, and sets PreparedPart::remote_positions.
  void wait_queue(PreparedBatch::Impl& batch);
  // Returns the intent of a late fetch, which is not queued, and sets PreparedPart::remote_positions of this owner.
  // Late fetches do not use the key dictionary, because they are not ordered with the rounds.
  OutgoingIntents wait_encode_late(PreparedBatch::Impl& batch, Rank owner);
  // Takes the queued intents for an owner.
  OutgoingIntents take(Rank owner);
  // Sends the encoded keys of intents.
  void send_keys(Rank owner, OutgoingIntents const& outgoing, std::uint64_t tag, TrafficKind kind);

  // Receives the intents of a message, and calls `then` when the rows of their keys are found.
  void receive(Rank from, Message const& message, bool is_late, std::function<void()> then);
  // Throws PeerError if a rank has ended `step` without the keys of a batch that it announced for this step.
  void require_keys(Clock step) const;
  // Drops the lists of steps up to `step`, which is applied.
  void end_step(Clock step);

  // Encode and decode keys of batches that were announced before, in any order.
  void wait_encode_known(Rank owner, TableId table, View<Key const> keys, std::vector<std::uint8_t>& wire);
  std::vector<Key> decode_known(Rank reader, TableId table, std::string_view& wire, std::uint64_t count);

 private:
  void wait_encode(PreparedBatch::Impl& batch, Rank owner, bool is_late, OutgoingIntents& outgoing);
  void check(Rank from, Intent const& intent, bool is_late) const;
  void wait_resolve(Rank from, Message const& message, bool is_late, std::string_view bytes);
  KeyEncoder& encoder_for(Rank owner, TableId table);
  KeyDecoder& decoder_for(Rank reader, TableId table);
  std::size_t dictionary_capacity(TableId table) const;

  RoundState& state_;
  std::map<Rank, OutgoingIntents> outgoing_;  // by owner: sent with the next gradient phase
  std::map<std::pair<Rank, TableId>, KeyEncoder> encoders_;
  std::map<std::pair<Rank, TableId>, KeyDecoder> decoders_;
  std::map<Rank, std::size_t> parts_ahead_;  // by reader: number of parts in RoundState::reader_batches
};

}  // namespace gpups::cache
