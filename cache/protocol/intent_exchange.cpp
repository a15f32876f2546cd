// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/intent_exchange.hpp"

#include <fmt/core.h>

#include "cache/wire/row_format.hpp"
#include "comm/wire.hpp"

namespace gpups::cache {
namespace {

// Returns the intent for one owner; it has no parts if the owner has no row of the batch.
Intent intent_for(Rank owner, PreparedBatch::Impl const& batch) {
  Intent intent{.clock = batch.clock, .parts = {}};
  if (!owns_rows_of(batch, owner)) return intent;
  for (auto const& part : batch.parts) intent.parts.push_back({part.table, part.owned_by(owner)});
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

std::size_t IntentExchange::dictionary_capacity(TableId table) const {
  return state_.table(table).options().dictionary_keys / static_cast<std::size_t>(state_.ranks - 1);
}

KeyEncoder& IntentExchange::encoder_for(Rank owner, TableId table) {
  return encoders_.try_emplace({owner, table}, dictionary_capacity(table)).first->second;
}

KeyDecoder& IntentExchange::decoder_for(Rank reader, TableId table) {
  return decoders_.try_emplace({reader, table}, dictionary_capacity(table)).first->second;
}

// -- intents of this rank --

void IntentExchange::wait_queue(PreparedBatch::Impl& batch) {
  for (auto const owner : state_.owners_of(batch)) wait_encode(batch, owner, false, outgoing_[owner]);
}

OutgoingIntents IntentExchange::wait_encode_late(PreparedBatch::Impl& batch, Rank owner) {
  OutgoingIntents outgoing;
  wait_encode(batch, owner, true, outgoing);
  return outgoing;
}

OutgoingIntents IntentExchange::take(Rank owner) {
  auto const waiting = outgoing_.extract(owner);
  return waiting.empty() ? OutgoingIntents{} : waiting.mapped();
}

// Encodes the batch's keys of this owner and appends them to `outgoing`.
void IntentExchange::wait_encode(PreparedBatch::Impl& batch, Rank owner, bool is_late, OutgoingIntents& outgoing) {
  auto& stream = state_.stream;
  outgoing.intents.push_back(intent_for(owner, batch));
  for (auto& part : batch.parts) {
    if (part.owned_by(owner) == 0) continue;
    KeyEncoder none(0);
    auto& dictionary = is_late ? none : encoder_for(owner, part.table);
    auto const theirs = part.keys_of(owner);
    auto const copied = theirs.device().is_host() ? std::vector<Key>() : to_host(stream, theirs);
    View<Key const> const keys = theirs.device().is_host() ? theirs : View<Key const>(copied);
    auto order =
        dictionary.wait_encode_keys(state_.on_host, keys, batch.clock, state_.round.next_in(), *outgoing.bytes).order;
    if (shares_scales(state_.table(part.table).options())) order = order_by_value(keys);
    for (auto& row : order) row += part.owners[number(owner)];
    copy<std::uint32_t>(stream, part.remote_positions.view().slice(part.first_of(owner, state_.me), order.size()),
                        View<std::uint32_t const>(order));
    if (!stream.device().is_host()) stream.wait();  // `order` ends here
  }
}

void IntentExchange::send_keys(Rank owner, OutgoingIntents const& outgoing, std::uint64_t tag, TrafficKind kind) {
  state_.messenger.count_compression(kind, outgoing.keys() * sizeof(Key), outgoing.bytes->size());
  state_.messenger.send_data(state_.on_host, owner, tag, outgoing.bytes->data(), outgoing.bytes->size(), kind,
                             outgoing.bytes);
}

void IntentExchange::wait_encode_known(Rank owner, TableId table, View<Key const> keys,
                                       std::vector<std::uint8_t>& wire) {
  encoder_for(owner, table).wait_encode_known(state_.on_host, keys, wire);
}

// -- intents of other ranks --

// Throws PeerError for an invalid intent. The intent of a late fetch is for the step that its reader trains or ends,
// which is at most two steps after the step that is applied here. Other intents arrive with the round of an earlier
// step.
void IntentExchange::check(Rank from, Intent const& intent, bool is_late) const {
  auto const& round = state_.round;
  Clock const first = is_late ? round.applied() + 1 : round.clock() + 1;
  Clock const last = is_late ? round.applied() + 2 : round.clock() + kStepsAheadMax;
  if (from == state_.me) state_.throw_peer_error(from, "announced a batch to itself");
  if (state_.reader_batches.contains({from, intent.clock})) state_.throw_peer_error(from, "announced a batch twice");
  if (intent.clock < first || intent.clock > last) {
    state_.throw_peer_error(
        from, fmt::format("announced a batch of step {} at step {}", number(intent.clock), number(round.clock())));
  }
  auto const ahead = parts_ahead_.find(from);
  if ((ahead == parts_ahead_.end() ? 0 : ahead->second) + intent.parts.size() > kPartsAheadMax) {
    state_.throw_peer_error(from, fmt::format("announced more than {} parts of batches ahead", kPartsAheadMax));
  }
  for (auto const& part : intent.parts) {
    if (number(part.table) >= state_.tables.size()) {
      state_.throw_peer_error(from, "announced keys of a table that does not exist");
    }
  }
}

void IntentExchange::receive(Rank from, Message const& message, bool is_late, std::function<void()> then) {
  for (auto const& intent : message.intents) {
    check(from, intent, is_late);
    auto& list = state_.reader_batches[{from, intent.clock}];
    list.is_late = is_late;
    for (auto const& part : intent.parts) list.parts.push_back({.table = part.table, .keys = part.keys});
    parts_ahead_[from] += intent.parts.size();
  }
  auto const bytes = std::make_shared<Array<std::uint8_t>>();
  auto const allocate = [bytes, size = message.key_bytes] {
    *bytes = Array<std::uint8_t>(Device::host(), size);
    return bytes->data();
  };
  auto const section = is_late ? Section::kLateFetchKeys : Section::kKeys;
  state_.messenger.receive_data(
      state_.on_host, from, tag(section, static_cast<std::uint64_t>(number(message.clock)), 0), message.key_bytes,
      allocate, [this, from, message, is_late, bytes, then = std::move(then)] {
        wait_resolve(from, message, is_late, {reinterpret_cast<char const*>(bytes->data()), bytes->size()});
        then();
      });
}

// Decodes the keys of all intents of a message, and finds or reserves their rows, all together.
void IntentExchange::wait_resolve(Rank from, Message const& message, bool is_late, std::string_view bytes) try {
  auto& stream = state_.stream;
  std::vector<Array<Key>> keys;
  std::vector<TableShard::ShardKeys> read;
  for (auto const& intent : message.intents) {
    auto& list = state_.reader_batches.at({from, intent.clock});
    list.keys_received = true;
    for (auto& part : list.parts) {
      KeyDecoder none(0);
      auto& dictionary = is_late ? none : decoder_for(from, part.table);
      auto& table = state_.table(part.table);
      auto keys_read = dictionary.decode(bytes, part.keys, intent.clock, message.clock).keys;
      if (shares_scales(table.options())) sort_keys(keys_read);
      part.ids = Array<std::uint32_t>(stream.device(), keys_read.size());
      keys.push_back(to_device(stream, keys_read));
      read.push_back({&table, keys.back(), part.ids});
      if (table.sends_deltas()) part.key_list = std::make_shared<Array<Key>>(to_device(stream, keys_read));
    }
  }
  if (!bytes.empty()) throw comm::WireError("more bytes than the keys of its batches need");
  TableShard::wait_resolve(stream, read);
  if (auto const repeated = TableShard::wait_find_repeated(stream, read)) {
    state_.throw_peer_error(from, fmt::format("announced key {} of table '{}' twice in a batch", number(repeated->key),
                                              read[repeated->part].shard->options().name));
  }
} catch (comm::WireError const& error) {
  state_.throw_peer_error(from, fmt::format("announced {}", error.what()));
}

std::vector<Key> IntentExchange::decode_known(Rank reader, TableId table, std::string_view& wire, std::uint64_t count) {
  return decoder_for(reader, table).decode_known(wire, count);
}

void IntentExchange::require_keys(Clock step) const {
  for (auto const& [id, list] : state_.reader_batches) {
    if (id.second <= step && !list.keys_received) {
      state_.throw_peer_error(id.first, "announced a batch for a step that it had ended");
    }
  }
}

void IntentExchange::end_step(Clock step) {
  for (auto const& [id, list] : state_.reader_batches) {
    if (id.second <= step) parts_ahead_[id.first] -= list.parts.size();
  }
  std::erase_if(state_.reader_batches, [step](auto const& list) { return list.first.second <= step; });
}

}  // namespace gpups::cache
