// SPDX-License-Identifier: Apache-2.0
// The intents of batches: announces the keys of this rank's batches to their homes, and receives the keys that other
// ranks announce, or that homes forward because this rank owns the rows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/protocol/home_planner.hpp"
#include "cache/protocol/round_state.hpp"
#include "cache/wire/key_dictionary.hpp"

namespace gpups::cache {

// Intents for one home, with their keys: plain keys, or bytes in the format of key_coding.hpp.
struct OutgoingIntents {
  std::vector<Intent> intents{};
  std::vector<ListKeys> plain{};  // of each intent: the keys of all parts, on the device
  std::shared_ptr<std::vector<std::uint8_t>> bytes = std::make_shared<std::vector<std::uint8_t>>();

  std::uint64_t keys() const;
  std::uint64_t key_bytes() const { return plain.empty() ? bytes->size() : keys() * sizeof(Key); }
};

// For the thread that makes progress. Functions with `wait` in their names block until the stream is done. Throws
// PeerError for invalid intents of peers.
class IntentExchange {
 public:
  // Both references must outlive this object.
  IntentExchange(RoundState& state, HomePlanner& planner) : state_(state), planner_(planner) {}

  // Queues the intents of a batch for the next gradient phase, and sets PreparedPart::reads. Waits only if keys are
  // encoded.
  void wait_queue(PreparedBatch::Impl& batch);
  // Returns the intents of a late fetch by home, which are not queued. Late fetches do not use the key dictionary,
  // because they are not ordered with the rounds.
  std::map<Rank, OutgoingIntents> wait_encode_late(PreparedBatch::Impl& batch);
  // Takes the queued intents for a home.
  OutgoingIntents take(Rank home);
  // Sends the keys of intents.
  void send_keys(Rank home, OutgoingIntents const& outgoing, std::uint64_t tag, TrafficKind kind);

  // Receives the intents of a message of the gradient phase, and then calls `then`. If rows move, they wait for the
  // plan of their step.
  void receive(Rank from, Message const& message, std::function<void()> then);
  // Takes the rows of other ranks' batches that this home owns.
  void take_planned(std::span<HomePlanner::Plan const> plans);
  // Receives the intent of a late fetch. then: called with its keys, of which take_planned() takes those of this rank.
  void receive_late(Rank from, Message const& message, std::function<void(std::vector<PartKeys>)> then);
  // Receives the forwards of a message, and then calls `then`.
  void receive_forwards(Rank home, Message const& message, std::function<void()> then);

  // Throws PeerError if a rank has ended `step` without the keys of a batch that it announced for this step.
  void require_keys(Clock step) const;
  // Drops the lists of steps up to `step`, which is applied.
  void end_step(Clock step);

  // Encode and decode keys of batches that were announced before, in any order.
  void wait_encode_known(Rank home, TableId table, View<Key const> keys, std::vector<std::uint8_t>& wire);
  std::vector<Key> decode_known(Rank reader, TableId table, std::string_view& wire, std::uint64_t count);

 private:
  using Dictionaries = std::map<std::pair<Rank, TableId>, KeyDecoder>;

  // The keys of a batch for one home: of all parts together, and by part.
  struct SortedKeysOfHome {
    ListKeys all;
    std::vector<ListKeys> parts;
  };
  std::map<Rank, SortedKeysOfHome> sort(PreparedBatch::Impl& batch);
  void wait_encode(PreparedBatch::Impl& batch, bool is_late, std::map<Rank, OutgoingIntents>& outgoing);
  // A list of keys that a rank announces, or a home forwards.
  struct AnnouncedList {
    Rank sender, reader, home;
    RowRole role;
    bool is_late;
  };
  void add_list(AnnouncedList const& list, Intent const& intent);
  void require_home(Rank home, std::vector<PartKeys> const& parts) const;
  void check_clock(Rank from, Clock clock, Clock first, Clock last) const;
  std::vector<PartKeys> decode(Rank from, Intent const& intent, Clock now, Dictionaries* dictionaries,
                               std::string_view& bytes);
  void receive_keys(Rank from, std::uint64_t tag, std::uint64_t bytes, std::function<void(std::string_view)> then);
  void receive_plain(Rank from, Message const& message, std::function<void()> then);
  void wait_take(Rank reader, Clock clock, std::vector<ListKeys> parts);
  void take(Rank reader, Clock clock, KeysByUse<ListKeys> keys);
  KeyEncoder& encoder_for(Rank home, TableId table);

  RoundState& state_;
  HomePlanner& planner_;
  std::map<Rank, OutgoingIntents> outgoing_;  // by home: sent with the next gradient phase
  std::map<std::pair<Rank, TableId>, KeyEncoder> encoders_;
  Dictionaries decoders_;                    // of intents, by reader
  Dictionaries forward_decoders_;            // by home
  std::map<Rank, std::size_t> parts_ahead_;  // by sender: number of parts in RoundState::reader_batches
};

}  // namespace gpups::cache
