// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/owner/announced_keys.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "comm/base/serialization.hpp"
#include "kernels/base/check.hpp"

namespace gpups::cache {
namespace {

// Returns whether the plain keys of lists have key_bytes bytes.
bool have_plain_size(Intents const& lists) {
  std::uint64_t left = lists.key_bytes / sizeof(Key);
  for (auto const& list : lists.batches) {
    for (auto const& part : list.parts) {
      if (part.keys > left) return false;
      left -= part.keys;
    }
  }
  return left == 0 && lists.key_bytes % sizeof(Key) == 0;
}

}  // namespace

// -- headers --

void AnnouncedKeys::check_clock(Rank from, Clock clock, Clock first, Clock last) const {
  if (clock >= first && clock <= last) return;
  state_.throw_peer_error(
      from, fmt::format("announced a batch of step {} at step {}", number(clock), number(state_.round.clock())));
}

// Adds a list without its keys. Throws PeerError if it is invalid.
void AnnouncedKeys::add_list(AnnouncedList const& announced, Intent const& intent) {
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
  if (known != batch.homes.end() && (known->second.announced.contains(role) || known->second.keys_received)) {
    state_.throw_peer_error(sender, "announced a batch twice");
  }
  auto const has_same_parts = [&](HomeList const& list) {
    return std::equal(list.tables.begin(), list.tables.end(), intent.parts.begin(), intent.parts.end(),
                      [](TableId table, IntentPart const& part) { return table == part.table; });
  };
  if (!batch.homes.empty() &&
      (batch.is_late != is_late || !batch.updates.empty() || !has_same_parts(batch.homes.begin()->second))) {
    state_.throw_peer_error(sender, "announced a batch with other parts than another rank");
  }
  batch.is_late = is_late;
  auto& list = batch.homes[home];
  list.announced.insert(role);
  if (list.tables.empty()) {
    for (auto const& part : intent.parts) list.tables.push_back(part.table);
  }
  parts_ahead_[sender] += intent.parts.size();
}

// -- keys --

// Decodes the keys of lists, which are all keys of a message. dictionaries: null for a late fetch. Returns them by list
// and part.
std::vector<std::vector<PartKeys>> AnnouncedKeys::decode(Rank from, std::span<Intent const> lists,
                                                         Dictionaries* dictionaries, std::string_view bytes) {
  std::vector<KeyDecoder::List> coded;
  for (auto const& list : lists) {
    for (auto const& [table, count] : list.parts) {
      coded.push_back({dictionaries == nullptr ? nullptr : &decoder_of(*dictionaries, from, table), count});
    }
  }
  auto keys = KeyDecoder::decode(state_.on_host, coded, bytes);
  if (!bytes.empty()) throw comm::SerializationError("more bytes than the keys of its batches need");
  auto next = keys.begin();
  std::vector<std::vector<PartKeys>> decoded;
  for (auto const& list : lists) {
    auto& parts = decoded.emplace_back();
    for (auto const& part : list.parts) parts.push_back({part.table, std::move(*next++)});
  }
  return decoded;
}

KeyDecoder& AnnouncedKeys::decoder_of(Dictionaries& dictionaries, Rank from, TableId table) {
  bool const plain = state_.plain_keys.received_from[number(from)];
  return dictionaries.try_emplace({from, table}, state_.dictionary_capacity(table, plain)).first->second;
}

// Receives encoded keys. Errors of `then` about the bytes become PeerErrors.
void AnnouncedKeys::receive_bytes(Rank from, std::uint64_t tag, std::uint64_t size,
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

void AnnouncedKeys::receive_plain(Rank from, std::uint64_t tag, Intents lists, TakeKeys then) {
  if (!have_plain_size(lists)) {
    state_.throw_peer_error(from, "announced keys of another size than their number needs");
  }
  auto const bytes = lists.key_bytes;
  auto const memory = std::make_shared<Array<Key>>();
  auto const allocate = [memory, device = state_.stream.device(), keys = bytes / sizeof(Key)] {
    *memory = Array<Key>(device, keys);
    return memory->data();
  };
  state_.messenger.receive_data(state_.stream, from, tag, bytes, allocate,
                                [batches = std::move(lists.batches), memory, then = std::move(then)] {
                                  std::vector<std::vector<ListKeys>> keys;
                                  std::size_t first = 0;
                                  for (auto const& batch : batches) {
                                    auto& parts = keys.emplace_back();
                                    for (auto const& [table, count] : batch.parts) {
                                      parts.push_back({table, memory->view().slice(first, count), memory});
                                      first += count;
                                    }
                                  }
                                  then(std::move(keys));
                                });
}

// Receives the keys of some lists of a message, and calls `then` with them: by list and part, ascending in each.
void AnnouncedKeys::receive_keys(Rank from, std::uint64_t tag, Intents lists, Dictionaries& dictionaries,
                                 TakeKeys then) {
  if (state_.plain_keys.received_from[number(from)]) {
    return receive_plain(from, tag, std::move(lists), std::move(then));
  }
  auto decode_all = [this, from, batches = std::move(lists.batches), &dictionaries,
                     then = std::move(then)](std::string_view bytes) {
    std::vector<std::vector<ListKeys>> keys;
    for (auto const& parts : decode(from, batches, &dictionaries, bytes)) {
      keys.push_back(upload_keys(state_.stream, parts));
    }
    then(std::move(keys));
  };
  receive_bytes(from, tag, lists.key_bytes, std::move(decode_all));
}

// Takes the keys that a home has announced, or forwarded in all its roles.
void AnnouncedKeys::take(ReaderBatchId const& of, Rank home, KeysByRole keys) {
  auto& list = state_.reader_batches.at(of).homes.at(home);
  // add_list() has made the list, with as many parts.
  GPUPS_ASSERT(!list.announced.empty() && !list.keys_received);
  for ([[maybe_unused]] auto const& parts : keys) GPUPS_ASSERT(parts.empty() || parts.size() == list.tables.size());
  list.keys = std::move(keys);
  list.keys_received = true;
}

// -- messages --

// Intents arrive with the round of an earlier step, and forwards with the round before their step.
void AnnouncedKeys::receive(Rank from, Intents const& intents, std::function<void()> then) {
  Clock const first = state_.round.clock() + (state_.placement.any_moved ? 2 : 1);
  for (auto const& intent : intents.batches) {
    check_clock(from, intent.clock, first, state_.round.clock() + kStepsAheadMax);
    add_list({from, from, state_.me, RowRole::kReadAndUpdate, false}, intent);
  }
  receive_keys(
      from, tag(Section::kKeys, state_.step(), 0), intents, decoders_,
      [this, from, batches = intents.batches, then = std::move(then)](std::vector<std::vector<ListKeys>> keys) {
        for (std::size_t i = 0; i < batches.size(); ++i) {
          planner_.announce(from, batches[i].clock, keys[i]);
          if (!state_.placement.any_moved) take({from, batches[i].clock}, state_.me, {std::move(keys[i])});
        }
        then();
      });
}

void AnnouncedKeys::receive_forwards(Rank home, Forwards const& forwards, std::function<void()> then) {
  Intents lists{.key_bytes = forwards.key_bytes};
  Clock const next = state_.round.clock() + 1;
  for (auto const& [reader, role, intent] : forwards.batches) {
    check_clock(home, intent.clock, next, next);
    if (role != RowRole::kReadAndUpdate && !state_.rows_move()) {
      state_.throw_peer_error(home, "moves rows of a store whose rows do not move");
    }
    add_list({home, reader, home, role, false}, intent);
    lists.batches.push_back(intent);
  }
  receive_keys(
      home, tag(Section::kForwardKeys, state_.step(), 0), std::move(lists), forward_decoders_,
      [this, home, batches = forwards.batches, then = std::move(then)](std::vector<std::vector<ListKeys>> keys) {
        std::map<ReaderBatchId, KeysByRole> by_batch;
        for (std::size_t i = 0; i < batches.size(); ++i) {
          auto const& [reader, role, intent] = batches[i];
          by_batch[{reader, intent.clock}][static_cast<std::size_t>(role)] = std::move(keys[i]);
        }
        for (auto& [id, roles] : by_batch) take(id, home, std::move(roles));
        then();
      });
}

// A late fetch is for the step that its reader trains or ends, or the one after it. These are at most two or three
// steps after the step that is applied here.
void AnnouncedKeys::receive_late(Rank from, LateFetch const& message, std::function<void(std::vector<PartKeys>)> then) {
  auto const& intent = message.intent;
  Clock const applied = state_.round.applied();
  check_clock(from, intent.clock, applied + 1, applied + (state_.placement.any_moved ? 3 : 2));
  add_list({from, from, state_.me, RowRole::kReadAndUpdate, true}, intent);
  receive_bytes(from, tag(Section::kLateFetchKeys, message.id, 0), message.key_bytes,
                [this, from, intent, then = std::move(then)](std::string_view bytes) {
                  then(std::move(decode(from, {&intent, 1}, nullptr, bytes)[0]));
                });
}

void AnnouncedKeys::receive_late_forward(Rank home, LateForward const& message, std::function<void()> then) {
  auto const& [reader, role, intent] = message.forward;
  Clock const applied = state_.round.applied();
  check_clock(home, intent.clock, applied + 1, applied + 3);
  if (role != RowRole::kReadAndUpdate) state_.throw_peer_error(home, "forwarded a late fetch that moves");
  add_list({home, reader, home, role, true}, intent);
  receive_bytes(home, tag(Section::kLateForwardKeys, message.forward_id, 0), message.key_bytes,
                [this, home, of = message.forward, then = std::move(then)](std::string_view bytes) {
                  auto const keys = decode(home, {&of.intent, 1}, nullptr, bytes);
                  take({of.reader, of.intent.clock}, home, {upload_keys(state_.stream, keys[0])});
                  then();
                });
}

std::vector<Key> AnnouncedKeys::decode_known(Rank reader, TableId table, std::string_view& wire, std::uint64_t count) {
  return decoder_of(decoders_, reader, table).decode_known(wire, count);
}

// -- steps --

void AnnouncedKeys::require_keys(Clock step) const {
  for (auto const& [id, batch] : state_.reader_batches) {
    for (auto const& [home, list] : batch.homes) {
      if (id.second <= step && !list.keys_received) {
        state_.throw_peer_error(home == state_.me ? id.first : home, "announced a batch for a step that it had ended");
      }
    }
  }
}

void AnnouncedKeys::end_step(Clock step) {
  GPUPS_ASSERT(step == state_.round.applied());
  for (auto const& [id, batch] : state_.reader_batches) {
    if (id.second > step) continue;
    for (auto const& [home, list] : batch.homes) {
      auto& ahead = parts_ahead_[home == state_.me ? id.first : home];
      std::size_t const parts = list.tables.size() * list.announced.size();
      GPUPS_ASSERT(ahead >= parts);  // add_list() has counted them for the same sender
      ahead -= parts;
    }
  }
  std::erase_if(state_.reader_batches, [step](auto const& batch) { return batch.first.second <= step; });
}

}  // namespace gpups::cache
