// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/intent_exchange.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "cache/wire/key_coding.hpp"
#include "comm/base/serialization.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/index/sort_keys.hpp"

namespace gpups::cache {
namespace {

// Returns the intent for one home; it has no parts if no row of the batch has this home.
Intent intent_for(Rank home, PreparedBatch::Impl const& batch) {
  Intent intent{.clock = batch.clock, .parts = {}};
  if (!has_list(batch, &PreparedPart::reads, home)) return intent;
  for (auto const& part : batch.parts) intent.parts.push_back({part.table, part.reads.size_of(home)});
  return intent;
}

// Returns whether the plain keys of intents have these bytes.
bool have_bytes(std::vector<Intent> const& intents, std::uint64_t bytes) {
  std::uint64_t left = bytes / sizeof(Key);
  for (auto const& intent : intents) {
    for (auto const& part : intent.parts) {
      if (part.keys > left) return false;
      left -= part.keys;
    }
  }
  return left == 0 && bytes % sizeof(Key) == 0;
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
  return encoders_
      .try_emplace({home, table}, state_.dictionary_capacity(table, state_.plain_keys.sent_to[number(home)]))
      .first->second;
}

// -- intents of this rank --

void IntentExchange::wait_queue(PreparedBatch::Impl& batch) {
  // Homes accept intents with the round of an earlier step; if rows move, they plan that step in the round before it.
  GPUPS_ASSERT(batch.clock > state_.round.next_in() + (state_.placement.any_moved ? 1 : 0));
  wait_encode(batch, false, outgoing_);
}

std::map<Rank, OutgoingIntents> IntentExchange::wait_encode_late(PreparedBatch::Impl& batch) {
  std::map<Rank, OutgoingIntents> outgoing;
  wait_encode(batch, true, outgoing);
  return outgoing;
}

OutgoingIntents IntentExchange::take(Rank home) {
  auto const waiting = outgoing_.extract(home);
  return waiting.empty() ? OutgoingIntents{} : waiting.mapped();
}

// Sorts the keys with other homes, and sets the order of PreparedPart::reads. Queued on the stream.
std::map<Rank, IntentExchange::SortedKeysOfHome> IntentExchange::sort(PreparedBatch::Impl& batch) {
  std::size_t count = 0;
  for (auto const& part : batch.parts) count += part.reads.size();
  auto const memory = std::make_shared<Array<Key>>(state_.stream.device(), count);
  std::map<Rank, SortedKeysOfHome> sorted;
  std::vector<kernels::SortedKeys> lists;
  std::size_t end = 0;
  for (Rank const home : state_.others()) {
    if (!has_list(batch, &PreparedPart::reads, home)) continue;
    auto& of_home = sorted[home];
    std::size_t const begin = end;
    for (auto const& part : batch.parts) {
      std::size_t const n = part.rows_at(home);
      auto const there = memory->view().slice(end, n);
      auto const places = part.reads.positions.view().slice(part.reads.first[number(home)], n);
      lists.push_back({part.keys_at(home), there, places, part.homes[number(home)]});
      of_home.parts.push_back({part.table, there, memory});
      end += n;
    }
    of_home.all = {.keys = memory->view().slice(begin, end - begin), .memory = memory};
  }
  GPUPS_ASSERT(end == count);  // every row of another home is in the list once
  kernels::sort_keys(state_.stream, lists);
  return sorted;
}

// Appends the batch's keys of other homes to `outgoing`. Late fetches are encoded without a dictionary.
void IntentExchange::wait_encode(PreparedBatch::Impl& batch, bool is_late, std::map<Rank, OutgoingIntents>& outgoing) {
  std::map<Rank, std::vector<PartKeys>> on_host;
  kernels::HostReads reads(state_.stream);
  auto const sorted = sort(batch);
  for (auto const& [home, keys] : sorted) {
    auto& to = outgoing[home];
    to.intents.push_back(intent_for(home, batch));
    if (!is_late && state_.plain_keys.sent_to[number(home)]) {
      to.plain.push_back(keys.all);
      continue;
    }
    auto& copies = on_host[home];
    copies.resize(keys.parts.size());
    for (std::size_t p = 0; p < copies.size(); ++p) {
      copies[p].table = keys.parts[p].table;
      reads.add<Key>(keys.parts[p].keys, copies[p].keys);
    }
  }
  reads.wait();
  KeyEncoder none(0);
  std::vector<KeyEncoder::List> lists;
  for (auto const& [home, parts] : on_host) {
    for (auto const& [table, keys] : parts) {
      if (keys.empty()) continue;
      auto& dictionary = is_late ? none : encoder_for(home, table);
      lists.push_back({&dictionary, View<Key const>(keys), batch.clock, outgoing[home].bytes.get()});
    }
  }
  KeyEncoder::wait_encode_keys(state_.on_host, lists, state_.round.next_in());
}

void IntentExchange::send_keys(Rank home, OutgoingIntents const& outgoing, std::uint64_t tag, TrafficKind kind) {
  state_.messenger.count_compression(kind, outgoing.keys() * sizeof(Key), outgoing.key_bytes());
  if (outgoing.plain.empty()) {
    return state_.messenger.send_data(state_.on_host, home, tag, outgoing.bytes->data(), outgoing.bytes->size(), kind,
                                      outgoing.bytes);
  }
  GPUPS_ASSERT(outgoing.plain.size() == outgoing.intents.size() && outgoing.bytes->empty());
  ListKeys body = outgoing.plain[0];
  if (outgoing.plain.size() > 1) {
    std::vector<View<Key const>> pieces;
    for (auto const& of_intent : outgoing.plain) pieces.push_back(of_intent.keys);
    auto const joined = std::make_shared<Array<Key>>(state_.stream.device(), outgoing.keys());
    kernels::concatenate_keys(state_.stream, pieces, *joined);
    body = {.keys = *joined, .memory = joined};
  }
  state_.messenger.send_data(state_.stream, home, tag, body.keys.data(), body.keys.bytes(), kind, body.memory);
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
            : dictionaries
                  ->try_emplace({from, part.table},
                                state_.dictionary_capacity(part.table, state_.plain_keys.received_from[number(from)]))
                  .first->second;
    auto& decoded = parts.emplace_back(PartKeys{part.table, {}});
    decoded.keys = dictionary.decode(bytes, part.keys, intent.clock, now).keys;
    sort_keys(decoded.keys);
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
  if (state_.plain_keys.received_from[number(from)]) return receive_plain(from, message, std::move(then));
  receive_keys(from, tag(Section::kKeys, static_cast<std::uint64_t>(number(message.clock)), 0), message.key_bytes,
               [this, from, message, then = std::move(then)](std::string_view bytes) {
                 for (auto const& intent : message.intents) {
                   auto parts = decode(from, intent, message.clock, &decoders_, bytes);
                   if (state_.placement.any_moved) {
                     planner_.announce(from, intent.clock, std::move(parts));
                   } else {
                     take(from, intent.clock, upload_keys(state_.stream, {.reads = std::move(parts)}));
                   }
                 }
                 if (!bytes.empty()) throw comm::SerializationError("more bytes than the keys of its batches need");
                 then();
               });
}

void IntentExchange::receive_plain(Rank from, Message const& message, std::function<void()> then) {
  if (!have_bytes(message.intents, message.key_bytes)) {
    state_.throw_peer_error(from, "announced keys of another size than their number needs");
  }
  auto const memory = std::make_shared<Array<Key>>();
  auto const allocate = [memory, device = state_.stream.device(), keys = message.key_bytes / sizeof(Key)] {
    *memory = Array<Key>(device, keys);
    return memory->data();
  };
  state_.messenger.receive_data(
      state_.stream, from, tag(Section::kKeys, static_cast<std::uint64_t>(number(message.clock)), 0), message.key_bytes,
      allocate, [this, from, intents = message.intents, memory, then = std::move(then)] {
        std::size_t first = 0;
        for (auto const& intent : intents) {
          std::vector<ListKeys> parts;
          for (auto const& [table, keys] : intent.parts) {
            parts.push_back({table, memory->view().slice(first, keys), memory});
            first += keys;
          }
          wait_take(from, intent.clock, std::move(parts));
        }
        then();
      });
}

// Takes the keys of a batch that is announced in time. If rows move, they wait for the plan of their step.
void IntentExchange::wait_take(Rank reader, Clock clock, std::vector<ListKeys> parts) {
  if (!state_.placement.any_moved) return take(reader, clock, {.reads = std::move(parts)});
  planner_.announce(reader, clock, wait_download_keys(state_.stream, parts));
}

void IntentExchange::take(Rank reader, Clock clock, KeysByUse<ListKeys> keys) {
  auto& list = state_.reader_batches.at({reader, clock}).homes.at(state_.me);
  // add_list() has made the list, with as many parts; a plan replaces them once.
  GPUPS_ASSERT(list.announced.contains(RowRole::kReadAndUpdate) && !list.keys_received);
  GPUPS_ASSERT(keys.reads.size() == list.reads.size());
  GPUPS_ASSERT(!keys.other_updates || keys.other_updates->size() == keys.reads.size());
  GPUPS_ASSERT(keys.moves.empty() || keys.moves.size() == keys.reads.size());
  list.take(std::move(keys));
}

void IntentExchange::take_planned(std::span<HomePlanner::Plan const> plans) {
  std::vector<KeysByUse<PartKeys> const*> lists;
  for (auto const& plan : plans) lists.push_back(&plan.own);
  auto uploaded = upload_keys(state_.stream, lists);
  for (std::size_t i = 0; i < plans.size(); ++i) take(plans[i].reader, plans[i].clock, std::move(uploaded[i]));
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
        std::map<ReaderBatchId, KeysByUse<PartKeys>> lists;
        for (auto const& [reader, role, intent] : message.forwards) {
          auto const parts = decode(home, intent, message.clock, is_late ? nullptr : &forward_decoders_, bytes);
          require_home(home, parts);
          add_keys(lists[{reader, intent.clock}], role, parts);
        }
        std::vector<KeysByUse<PartKeys> const*> all;
        for (auto const& [id, list] : lists) all.push_back(&list);
        auto uploaded = upload_keys(state_.stream, all);
        auto next = uploaded.begin();
        for (auto const& [id, list] : lists) state_.reader_batches.at(id).homes.at(home).take(std::move(*next++));
        if (!bytes.empty()) throw comm::SerializationError("more bytes than the keys of its batches need");
        then();
      });
}

std::vector<Key> IntentExchange::decode_known(Rank reader, TableId table, std::string_view& wire, std::uint64_t count) {
  bool const plain = state_.plain_keys.received_from[number(reader)];
  return decoders_.try_emplace({reader, table}, state_.dictionary_capacity(table, plain))
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
