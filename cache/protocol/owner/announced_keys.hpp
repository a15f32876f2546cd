// SPDX-License-Identifier: Apache-2.0
// The keys of other ranks' batches: those that readers announce to this rank as their home, and those that homes
// forward to it as an owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cache/protocol/home/home_planner.hpp"
#include "cache/protocol/round/round_state.hpp"
#include "cache/wire/key_dictionary.hpp"

namespace gpups::cache {

// For the thread that makes progress. Throws PeerError for invalid intents and forwards of peers.
class AnnouncedKeys {
 public:
  // Both references must outlive this object.
  AnnouncedKeys(RoundState& state, HomePlanner& planner) : state_(state), planner_(planner) {}

  // Receives the intents of a gradient phase, and then calls `then`. If rows move, they wait for the plan of their
  // step.
  void receive(Rank from, Intents const& intents, std::function<void()> then);
  // Takes the rows of another rank's batch that this home owns itself.
  void take_planned(Rank reader, Clock clock, KeysByRole keys) { take({reader, clock}, state_.me, std::move(keys)); }
  // Receives the forwards of a gradient phase, and then calls `then`.
  void receive_forwards(Rank home, Forwards const& forwards, std::function<void()> then);
  // Receives the keys of a late fetch, and then calls `then` with them. take_planned() takes those of rows that this
  // rank owns.
  void receive_late(Rank from, LateFetch const& message, std::function<void(std::vector<PartKeys>)> then);
  // Receives and takes the keys of a late forward, and then calls `then`.
  void receive_late_forward(Rank home, LateForward const& message, std::function<void()> then);

  // Throws PeerError if a rank has ended `step` without the keys of a batch that it announced for this step.
  void require_keys(Clock step) const;
  // Drops the lists of steps up to `step`, which is applied.
  void end_step(Clock step);

  // Decodes the keys of KeyEncoder::encode_known(). Returns them in ascending order.
  std::vector<Key> decode_known(Rank reader, TableId table, std::string_view& wire, std::uint64_t count);

 private:
  using Dictionaries = std::map<std::pair<Rank, TableId>, KeyDecoder>;

  // A list of keys that a rank announces, or a home forwards.
  struct AnnouncedList {
    Rank sender, reader, home;
    RowRole role;
    bool is_late;
  };
  void add_list(AnnouncedList const& list, Intent const& intent);
  void check_clock(Rank from, Clock clock, Clock first, Clock last) const;
  std::vector<std::vector<PartKeys>> decode(Rank from, std::span<Intent const> lists, Dictionaries* dictionaries,
                                            std::string_view bytes);
  KeyDecoder& decoder_of(Dictionaries& dictionaries, Rank from, TableId table);
  void receive_bytes(Rank from, std::uint64_t tag, std::uint64_t bytes, std::function<void(std::string_view)> then);
  using TakeKeys = std::function<void(std::vector<std::vector<ListKeys>>)>;
  void receive_plain(Rank from, std::uint64_t tag, Intents lists, TakeKeys then);
  void receive_keys(Rank from, std::uint64_t tag, Intents lists, Dictionaries& dictionaries, TakeKeys then);
  void take(ReaderBatchId const& of, Rank home, KeysByRole keys);

  RoundState& state_;
  HomePlanner& planner_;
  Dictionaries decoders_;                    // of intents, by reader
  Dictionaries forward_decoders_;            // by home
  std::map<Rank, std::size_t> parts_ahead_;  // by sender: number of parts in RoundState::reader_batches
};

}  // namespace gpups::cache
