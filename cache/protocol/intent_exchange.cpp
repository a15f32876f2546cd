// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/intent_exchange.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "cache/wire/row_format.hpp"
#include "comm/wire.hpp"
#include "kernels/upload.hpp"

namespace gpups::cache {
namespace {

// Returns the intent for one home; it has no parts if no row of the batch has this home.
Intent intent_for(Rank home, PreparedBatch::Impl const& batch) {
  Intent intent{.clock = batch.clock, .parts = {}};
  if (!has_list(batch, home)) return intent;
  for (auto const& part : batch.parts) intent.parts.push_back({part.table, part.list_size(home)});
  return intent;
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
    if (!has_list(batch, home)) continue;
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

  std::vector<std::vector<std::uint32_t>> positions(batch.parts.size());
  for (std::size_t i = 0; i < lists.size(); ++i) {
    auto const [home, p] = places[i];
    auto const& part = batch.parts[p];
    auto& order = encoded[i].order;
    if (shares_scales(state_.table(part.table).options())) order = order_by_value(lists[i].keys);
    for (auto const row : order) positions[p].push_back(row + part.homes[number(home)]);
  }
  for (std::size_t p = 0; p < batch.parts.size(); ++p) {
    kernels::upload<std::uint32_t>(state_.stream, batch.parts[p].remote_positions, positions[p]);
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

// Adds the list that `sender` announces. Throws PeerError if it is invalid. Allocates no memory for its keys.
void IntentExchange::add_list(Rank sender, Rank reader, Rank home, Intent const& intent, bool is_late) {
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
  if (batch.homes.contains(home)) state_.throw_peer_error(sender, "announced a batch twice");
  auto const has_same_parts = [&](HomeList const& list) {
    return std::equal(list.parts.begin(), list.parts.end(), intent.parts.begin(), intent.parts.end(),
                      [](auto const& a, auto const& b) { return a.table == b.table; });
  };
  if (!batch.homes.empty() &&
      (batch.is_late != is_late || !batch.parts.empty() || !has_same_parts(batch.homes.begin()->second))) {
    state_.throw_peer_error(sender, "announced a batch with other parts than another rank");
  }
  batch.is_late = is_late;
  auto& list = batch.homes[home];
  for (auto const& part : intent.parts) list.parts.push_back({.table = part.table, .keys = part.keys});
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
    } catch (comm::WireError const& error) {
      state_.throw_peer_error(from, fmt::format("announced {}", error.what()));
    }
  });
}

// Keeps the keys of a list until wait_find().
void IntentExchange::take_list(ReceivedList list) {
  auto& places = state_.reader_batches.at({list.reader, list.clock}).homes.at(list.home);
  places.keys_received = true;
  for (std::size_t p = 0; p < list.parts.size(); ++p) places.parts[p].keys = list.parts[p].keys.size();
  received_.push_back(std::move(list));
}

// The lists of a table are found together, so their keys are one after another in memory.
void IntentExchange::wait_find(kernels::HostReads& also) {
  auto& stream = state_.stream;
  struct Place {
    ReceivedList const* list;
    std::size_t part;
  };
  std::map<TableId, std::vector<Place>> places;
  std::vector<Key> all;
  std::size_t count = 0;
  for (auto const& list : received_) {
    for (std::size_t p = 0; p < list.parts.size(); ++p) {
      places[list.parts[p].table].push_back({&list, p});
      count += list.parts[p].keys.size();
    }
  }
  all.reserve(count);
  for (auto const& [table, of_table] : places) {
    for (auto const& [list, p] : of_table)
      all.insert(all.end(), list->parts[p].keys.begin(), list->parts[p].keys.end());
  }
  Array<Key> const keys(stream.device(), count);
  kernels::upload<Key>(stream, keys, all);
  auto const ids = std::make_shared<Array<std::uint32_t>>(stream.device(), count);

  std::vector<TableShard::ShardLists> found;
  std::size_t begin = 0;
  for (auto const& [table, of_table] : places) {
    auto& shard = state_.table(table);
    std::size_t size = 0;
    std::vector<std::size_t> ends;
    for (auto const& [list, p] : of_table) {
      std::size_t const first = begin + size, n = list->parts[p].keys.size();
      auto& part = state_.reader_batches.at({list->reader, list->clock}).homes.at(list->home).parts[p];
      part.ids = ids->view().slice(first, n);
      part.ids_memory = ids;
      if (shard.sends_deltas()) {
        part.key_list = std::make_shared<Array<Key>>(stream.device(), n);
        copy<Key>(stream, *part.key_list, keys.view().slice(first, n));
      }
      ends.push_back(size += n);
    }
    found.push_back({{&shard, keys.view().slice(begin, size), ids->view().slice(begin, size)}, std::move(ends)});
    begin += size;
  }
  auto const repeated = TableShard::wait_resolve_distinct(stream, found, also);
  if (repeated) {
    auto const place = std::next(places.begin(), static_cast<std::ptrdiff_t>(repeated->part))->second[repeated->list];
    state_.throw_peer_error(place.list->sender,
                            fmt::format("announced key {} of table '{}' twice in a batch", number(repeated->key),
                                        found[repeated->part].shard->options().name));
  }
  received_.clear();
}

// Intents arrive with the round of an earlier step.
void IntentExchange::receive(Rank from, Message const& message, std::function<void()> then) {
  for (auto const& intent : message.intents) {
    check_clock(from, intent.clock, state_.round.clock() + 1, state_.round.clock() + kStepsAheadMax);
    add_list(from, from, state_.me, intent, false);
  }
  receive_keys(from, tag(Section::kKeys, static_cast<std::uint64_t>(number(message.clock)), 0), message.key_bytes,
               [this, from, message, then = std::move(then)](std::string_view bytes) {
                 std::vector<ReceivedList> lists;
                 for (auto const& intent : message.intents) {
                   auto parts = decode(from, intent, message.clock, &decoders_, bytes);
                   if (auto plan = planner_.plan(from, parts)) {
                     parts = std::move(plan->here);
                     planner_.queue(from, intent.clock, std::move(*plan));
                   }
                   lists.push_back({from, from, state_.me, intent.clock, std::move(parts)});
                 }
                 if (!bytes.empty()) throw comm::WireError("more bytes than the keys of its batches need");
                 for (auto& list : lists) take_list(std::move(list));
                 then();
               });
}

// The intent of a late fetch is for the step that its reader trains or ends, or the one after it. These are at most two
// or three steps after the step that is applied here.
void IntentExchange::receive_late(Rank from, Message const& message,
                                  std::function<void(std::optional<HomePlanner::Plan>)> then) {
  auto const& intent = message.intents[0];
  Clock const applied = state_.round.applied();
  check_clock(from, intent.clock, applied + 1, applied + (state_.placement.any_moved ? 3 : 2));
  add_list(from, from, state_.me, intent, true);
  receive_keys(from, tag(Section::kLateFetchKeys, message.id, 0), message.key_bytes,
               [this, from, intent, then = std::move(then)](std::string_view bytes) {
                 auto parts = decode(from, intent, intent.clock, nullptr, bytes);
                 if (!bytes.empty()) throw comm::WireError("more bytes than the keys of its batches need");
                 auto plan = planner_.plan(from, parts);
                 take_list({from, from, state_.me, intent.clock, plan ? plan->here : std::move(parts)});
                 kernels::HostReads none(state_.stream);
                 wait_find(none);
                 then(std::move(plan));
               });
}

void IntentExchange::receive_forwards(Rank home, Message const& message, std::function<void()> then) {
  bool const is_late = message.kind == MessageKind::kLateForward;
  for (auto const& [reader, intent] : message.forwards) {
    Clock const now = is_late ? state_.round.applied() : state_.round.clock();
    check_clock(home, intent.clock, now + (is_late ? 1 : 2), now + (is_late ? 3 : kStepsAheadMax));
    add_list(home, reader, home, intent, is_late);
  }
  auto const section = is_late ? tag(Section::kLateForwardKeys, message.forward_id, 0)
                               : tag(Section::kForwardKeys, static_cast<std::uint64_t>(number(message.clock)), 0);
  receive_keys(home, section, message.key_bytes,
               [this, home, is_late, message, then = std::move(then)](std::string_view bytes) {
                 std::vector<ReceivedList> lists;
                 for (auto const& [reader, intent] : message.forwards) {
                   auto parts = decode(home, intent, message.clock, is_late ? nullptr : &forward_decoders_, bytes);
                   for (auto& part : parts) sort_keys(part.keys);
                   lists.push_back({home, reader, home, intent.clock, std::move(parts)});
                 }
                 if (!bytes.empty()) throw comm::WireError("more bytes than the keys of its batches need");
                 for (auto& list : lists) take_list(std::move(list));
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
  for (auto const& [id, batch] : state_.reader_batches) {
    if (id.second > step) continue;
    for (auto const& [home, list] : batch.homes) {
      parts_ahead_[home == state_.me ? id.first : home] -= list.parts.size();
    }
  }
  std::erase_if(state_.reader_batches, [step](auto const& batch) { return batch.first.second <= step; });
}

}  // namespace gpups::cache
