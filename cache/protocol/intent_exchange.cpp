// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/intent_exchange.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "cache/wire/key_coding.hpp"
#include "cache/wire/row_coder.hpp"
#include "comm/base/serialization.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/runtime/upload.hpp"

namespace gpups::cache {
namespace {

// Returns the intent for one home; it has no parts if no row of the batch has this home.
Intent intent_for(Rank home, PreparedBatch::Impl const& batch) {
  Intent intent{.clock = batch.clock, .parts = {}};
  if (!has_list(batch, &PreparedPart::reads, home)) return intent;
  for (auto const& part : batch.parts) intent.parts.push_back({part.table, part.reads.size_of(home)});
  return intent;
}

// Adds the keys of all parts, in ascending order. to: the same parts, with other keys.
void add_keys(std::vector<PartKeys>& to, std::vector<PartKeys> const& parts) {
  for (std::size_t p = 0; p < parts.size(); ++p) {
    to[p].keys.insert(to[p].keys.end(), parts[p].keys.begin(), parts[p].keys.end());
    sort_keys(to[p].keys);
  }
}

// Takes the keys of a list that a home has forwarded.
void take_forward(HomeList& list, RowRole role, std::vector<PartKeys> const& parts) {
  list.keys_received = true;
  bool const both = role == RowRole::kReadAndUpdate;
  if ((role == RowRole::kRead || role == RowRole::kUpdate) && !list.other_updates) list.other_updates = list.reads;
  if (both || role == RowRole::kRead) add_keys(list.reads, parts);
  if ((both || role == RowRole::kUpdate) && list.other_updates) add_keys(*list.other_updates, parts);
  if (role != RowRole::kMove) return;
  if (list.moves.empty()) list.moves = without_keys(list.reads);
  add_keys(list.moves, parts);
}

}  // namespace

std::uint64_t OutgoingIntents::keys() const {
  std::uint64_t keys = 0;
  for (auto const& intent : intents) {
    for (auto const& part : intent.parts) keys += part.keys;
  }
  return keys;
}

KeyEncoder& IntentExchange::encoder_for(Rank home, TableId table) {
  return encoders_.try_emplace({home, table}, state_.dictionary_capacity(table)).first->second;
}

// -- intents of this rank --

void IntentExchange::wait_queue(PreparedBatch::Impl& batch, HostKeys const& keys) {
  // Homes accept intents with the round of an earlier step; if rows move, they plan that step in the round before it.
  GPUPS_ASSERT(batch.clock > state_.round.next_in() + (state_.placement.any_moved ? 1 : 0));
  wait_encode(batch, keys, false, outgoing_);
}

std::map<Rank, OutgoingIntents> IntentExchange::wait_encode_late(PreparedBatch::Impl& batch, HostKeys const& keys) {
  std::map<Rank, OutgoingIntents> outgoing;
  wait_encode(batch, keys, true, outgoing);
  return outgoing;
}

OutgoingIntents IntentExchange::take(Rank home) {
  auto const waiting = outgoing_.extract(home);
  return waiting.empty() ? OutgoingIntents{} : waiting.mapped();
}

// Encodes the batch's keys of other homes and appends them to `outgoing`.
void IntentExchange::wait_encode(PreparedBatch::Impl& batch, HostKeys const& keys, bool is_late,
                                 std::map<Rank, OutgoingIntents>& outgoing) {
  KeyEncoder none(0);
  std::vector<KeyEncoder::List> lists;
  std::vector<std::pair<Rank, std::size_t>> places;  // of each list: home and part
  for (Rank const home : state_.others()) {
    if (!has_list(batch, &PreparedPart::reads, home)) continue;
    auto& to = outgoing[home];
    to.intents.push_back(intent_for(home, batch));
    for (std::size_t p = 0; p < batch.parts.size(); ++p) {
      auto const& part = batch.parts[p];
      if (part.rows_at(home) == 0) continue;
      auto& dictionary = is_late ? none : encoder_for(home, part.table);
      lists.push_back({&dictionary, keys.of(part.keys_at(home)), batch.clock, to.bytes.get()});
      places.emplace_back(home, p);
    }
  }
  auto encoded = KeyEncoder::wait_encode_keys(state_.on_host, lists, state_.round.next_in());
  GPUPS_ASSERT(encoded.size() == lists.size());

  std::vector<std::vector<std::uint32_t>> positions(batch.parts.size());
  for (std::size_t i = 0; i < lists.size(); ++i) {
    auto const [home, p] = places[i];
    auto const& part = batch.parts[p];
    auto& order = encoded[i].order;
    if (shares_scales(state_.table(part.table).options())) order = order_by_value(lists[i].keys);
    for (auto const row : order) positions[p].push_back(row + part.homes[number(home)]);
  }
  for (std::size_t p = 0; p < batch.parts.size(); ++p) {
    // The homes have the keys in this order, and every row of another home is in the list once.
    GPUPS_ASSERT(positions[p].size() == batch.parts[p].reads.size());
    kernels::upload<std::uint32_t>(state_.stream, batch.parts[p].reads.positions, positions[p]);
  }
}

void IntentExchange::send_keys(Rank home, OutgoingIntents const& outgoing, std::uint64_t tag, TrafficKind kind) {
  state_.messenger.count_compression(kind, outgoing.keys() * sizeof(Key), outgoing.bytes->size());
  state_.messenger.send_data(state_.on_host, home, tag, outgoing.bytes->data(), outgoing.bytes->size(), kind,
                             outgoing.bytes);
}

void IntentExchange::wait_encode_known(Rank home, TableId table, View<Key const> keys,
                                       std::vector<std::uint8_t>& wire) {
  encoder_for(home, table).wait_encode_known(state_.on_host, keys, wire);
}

// -- intents of other ranks --

void IntentExchange::check_clock(Rank from, Clock clock, Clock first, Clock last) const {
  if (clock >= first && clock <= last) return;
  state_.throw_peer_error(
      from, fmt::format("announced a batch of step {} at step {}", number(clock), number(state_.round.clock())));
}

// Adds a list without its keys. Throws PeerError if it is invalid.
void IntentExchange::add_list(AnnouncedList const& announced, Intent const& intent) {
  auto const& [sender, reader, home, role, is_late] = announced;
  if (number(reader) >= static_cast<std::uint32_t>(state_.ranks) || reader == state_.me) {
    state_.throw_peer_error(sender, "announced a batch to itself");
  }
  auto const ahead = parts_ahead_.find(sender);
  if ((ahead == parts_ahead_.end() ? 0 : ahead->second) + intent.parts.size() > kPartsAheadMax) {
    state_.throw_peer_error(sender, fmt::format("announced more than {} parts of batches ahead", kPartsAheadMax));
  }
  for (auto const& part : intent.parts) {
    if (number(part.table) >= state_.tables.size()) {
      state_.throw_peer_error(sender, "announced keys of a table that does not exist");
    }
  }
  auto& batch = state_.reader_batches[{reader, intent.clock}];
  auto const known = batch.homes.find(home);
  if (known != batch.homes.end() && known->second.announced.contains(role)) {
    state_.throw_peer_error(sender, "announced a batch twice");
  }
  auto const has_same_parts = [&](HomeList const& list) {
    return std::equal(list.reads.begin(), list.reads.end(), intent.parts.begin(), intent.parts.end(),
                      [](auto const& a, auto const& b) { return a.table == b.table; });
  };
  if (!batch.homes.empty() &&
      (batch.is_late != is_late || !batch.updates.empty() || !has_same_parts(batch.homes.begin()->second))) {
    state_.throw_peer_error(sender, "announced a batch with other parts than another rank");
  }
  batch.is_late = is_late;
  auto& list = batch.homes[home];
  list.announced.insert(role);
  if (list.reads.empty()) {
    for (auto const& part : intent.parts) list.reads.push_back({part.table, {}});
  }
  parts_ahead_[sender] += intent.parts.size();
}

// Decodes the keys of an intent, and removes them from the front of `bytes`. dictionaries: null for a late fetch.
std::vector<PartKeys> IntentExchange::decode(Rank from, Intent const& intent, Clock now, Dictionaries* dictionaries,
                                             std::string_view& bytes) {
  std::vector<PartKeys> parts;
  for (auto const& part : intent.parts) {
    KeyDecoder none(0);
    auto& dictionary =
        dictionaries == nullptr
            ? none
            : dictionaries->try_emplace({from, part.table}, state_.dictionary_capacity(part.table)).first->second;
    auto& decoded = parts.emplace_back(PartKeys{part.table, {}});
    decoded.keys = dictionary.decode(bytes, part.keys, intent.clock, now).keys;
    if (shares_scales(state_.table(part.table).options())) sort_keys(decoded.keys);
  }
  return parts;
}

// Receives encoded keys. Errors of `then` about the bytes become PeerErrors.
void IntentExchange::receive_keys(Rank from, std::uint64_t tag, std::uint64_t size,
                                  std::function<void(std::string_view)> then) {
  auto const bytes = std::make_shared<Array<std::uint8_t>>();
  auto const allocate = [bytes, size] {
    *bytes = Array<std::uint8_t>(Device::host(), size);
    return bytes->data();
  };
  state_.messenger.receive_data(state_.on_host, from, tag, size, allocate, [this, from, bytes, then = std::move(then)] {
    try {
      then({reinterpret_cast<char const*>(bytes->data()), bytes->size()});
    } catch (comm::SerializationError const& error) {
      state_.throw_peer_error(from, fmt::format("announced {}", error.what()));
    }
  });
}

// Throws PeerError if a key has another home than the rank that forwards it.
void IntentExchange::require_home(Rank home, std::vector<PartKeys> const& parts) const {
  for (auto const& [table, keys] : parts) {
    for (Key const key : keys) {
      if (kernels::home_of(key, static_cast<std::uint32_t>(state_.ranks)) == number(home)) continue;
      state_.throw_peer_error(home, fmt::format("forwarded key {} of table '{}', whose home is another rank",
                                                number(key), state_.table(table).options().name));
    }
  }
}

// Intents arrive with the round of an earlier step.
void IntentExchange::receive(Rank from, Message const& message, std::function<void()> then) {
  Clock const first = state_.round.clock() + (state_.placement.any_moved ? 2 : 1);
  for (auto const& intent : message.intents) {
    check_clock(from, intent.clock, first, state_.round.clock() + kStepsAheadMax);
    add_list({from, from, state_.me, RowRole::kReadAndUpdate, false}, intent);
  }
  receive_keys(from, tag(Section::kKeys, static_cast<std::uint64_t>(number(message.clock)), 0), message.key_bytes,
               [this, from, message, then = std::move(then)](std::string_view bytes) {
                 for (auto const& intent : message.intents) {
                   auto parts = decode(from, intent, message.clock, &decoders_, bytes);
                   if (state_.placement.any_moved) {
                     planner_.announce(from, intent.clock, std::move(parts));
                   } else {
                     take_planned({.reader = from, .clock = intent.clock, .reads = std::move(parts)});
                   }
                 }
                 if (!bytes.empty()) throw comm::SerializationError("more bytes than the keys of its batches need");
                 then();
               });
}

void IntentExchange::take_planned(HomePlanner::Plan const& plan) {
  auto& list = state_.reader_batches.at({plan.reader, plan.clock}).homes.at(state_.me);
  // add_list() has made the list, with as many parts; a plan replaces them once.
  GPUPS_ASSERT(list.announced.contains(RowRole::kReadAndUpdate) && !list.keys_received);
  GPUPS_ASSERT(plan.reads.size() == list.reads.size());
  GPUPS_ASSERT(!plan.other_updates || plan.other_updates->size() == plan.reads.size());
  GPUPS_ASSERT(plan.moves.empty() || plan.moves.size() == plan.reads.size());
  list.keys_received = true;
  list.reads = plan.reads;
  list.other_updates = plan.other_updates;
  list.moves = plan.moves;
}

// The intent of a late fetch is for the step that its reader trains or ends, or the one after it. These are at most two
// or three steps after the step that is applied here.
void IntentExchange::receive_late(Rank from, Message const& message, std::function<void(std::vector<PartKeys>)> then) {
  auto const& intent = message.intents[0];
  Clock const applied = state_.round.applied();
  check_clock(from, intent.clock, applied + 1, applied + (state_.placement.any_moved ? 3 : 2));
  add_list({from, from, state_.me, RowRole::kReadAndUpdate, true}, intent);
  receive_keys(from, tag(Section::kLateFetchKeys, message.id, 0), message.key_bytes,
               [this, from, intent, then = std::move(then)](std::string_view bytes) {
                 auto parts = decode(from, intent, intent.clock, nullptr, bytes);
                 if (!bytes.empty()) throw comm::SerializationError("more bytes than the keys of its batches need");
                 then(std::move(parts));
               });
}

void IntentExchange::receive_forwards(Rank home, Message const& message, std::function<void()> then) {
  bool const is_late = message.kind == MessageKind::kLateForward;
  for (auto const& [reader, role, intent] : message.forwards) {
    Clock const now = is_late ? state_.round.applied() : state_.round.clock();
    check_clock(home, intent.clock, now + (is_late ? 1 : 2), now + (is_late ? 3 : kStepsAheadMax));
    if (is_late && role != RowRole::kReadAndUpdate) state_.throw_peer_error(home, "forwarded a late fetch that moves");
    bool const may_move = std::all_of(intent.parts.begin(), intent.parts.end(), [&](auto const& part) {
      return part.keys == 0 || (number(part.table) < state_.tables.size() && state_.may_move(part.table));
    });
    if (role != RowRole::kReadAndUpdate && !(state_.rows_move() && may_move)) {
      state_.throw_peer_error(home, "moves rows of a table whose rows do not move");
    }
    add_list({home, reader, home, role, is_late}, intent);
  }
  auto const section = is_late ? tag(Section::kLateForwardKeys, message.forward_id, 0)
                               : tag(Section::kForwardKeys, static_cast<std::uint64_t>(number(message.clock)), 0);
  receive_keys(
      home, section, message.key_bytes, [this, home, is_late, message, then = std::move(then)](std::string_view bytes) {
        for (auto const& [reader, role, intent] : message.forwards) {
          auto const parts = decode(home, intent, message.clock, is_late ? nullptr : &forward_decoders_, bytes);
          require_home(home, parts);
          take_forward(state_.reader_batches.at({reader, intent.clock}).homes.at(home), role, parts);
        }
        if (!bytes.empty()) throw comm::SerializationError("more bytes than the keys of its batches need");
        then();
      });
}

std::vector<Key> IntentExchange::decode_known(Rank reader, TableId table, std::string_view& wire, std::uint64_t count) {
  return decoders_.try_emplace({reader, table}, state_.dictionary_capacity(table))
      .first->second.decode_known(wire, count);
}

void IntentExchange::require_keys(Clock step) const {
  for (auto const& [id, batch] : state_.reader_batches) {
    for (auto const& [home, list] : batch.homes) {
      if (id.second <= step && !list.keys_received) {
        state_.throw_peer_error(home == state_.me ? id.first : home, "announced a batch for a step that it had ended");
      }
    }
  }
}

void IntentExchange::end_step(Clock step) {
  GPUPS_ASSERT(step == state_.round.applied());
  for (auto const& [id, batch] : state_.reader_batches) {
    if (id.second > step) continue;
    for (auto const& [home, list] : batch.homes) {
      auto& ahead = parts_ahead_[home == state_.me ? id.first : home];
      std::size_t const parts = list.reads.size() * list.announced.size();
      GPUPS_ASSERT(ahead >= parts);  // add_list() has counted them for the same sender
      ahead -= parts;
    }
  }
  std::erase_if(state_.reader_batches, [step](auto const& batch) { return batch.first.second <= step; });
}

}  // namespace gpups::cache
