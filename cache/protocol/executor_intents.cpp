// SPDX-License-Identifier: Apache-2.0
// RoundExecutor: sends the intents of this rank's batches to owners, and receives those of other ranks.
#include <fmt/core.h>

#include <utility>

#include "cache/protocol/round_executor.hpp"
#include "cache/wire/row_format.hpp"
#include "comm/wire.hpp"

namespace gpups::cache {

std::size_t RoundExecutor::dictionary_capacity(TableId table) const {
  return tables_[number(table)]->options().dictionary_keys / static_cast<std::size_t>(ranks_ - 1);
}

KeyEncoder& RoundExecutor::encoder_for(Rank owner, TableId table) {
  return encoders_.try_emplace({owner, table}, dictionary_capacity(table)).first->second;
}

KeyDecoder& RoundExecutor::decoder_for(Rank reader, TableId table) {
  return decoders_.try_emplace({reader, table}, dictionary_capacity(table)).first->second;
}

// -- intents of this rank --

std::vector<Rank> RoundExecutor::owners_of(PreparedBatch::Impl const& batch) const {
  std::vector<Rank> owners;
  for (int q = 0; q < ranks_; ++q) {
    Rank const owner{static_cast<std::uint32_t>(q)};
    if (owner != me_ && !intent_for(owner, batch).parts.empty()) owners.push_back(owner);
  }
  return owners;
}

Intent RoundExecutor::intent_for(Rank owner, PreparedBatch::Impl const& batch) const {
  Intent intent{.clock = batch.clock, .parts = {}};
  std::size_t keys = 0;
  for (auto const& part : batch.parts) {
    intent.parts.push_back({part.table, part.owned_by(owner)});
    keys += part.owned_by(owner);
  }
  if (keys == 0) intent.parts.clear();
  return intent;
}

void RoundExecutor::encode_intent(Rank owner, PreparedBatch::Impl& batch, bool is_late, OutgoingIntents& outgoing) {
  outgoing.intents.push_back(intent_for(owner, batch));
  if (outgoing.bytes == nullptr) outgoing.bytes = std::make_shared<std::vector<std::uint8_t>>();
  for (auto& part : batch.parts) {
    if (part.owned_by(owner) == 0) continue;
    KeyEncoder none(0);
    auto& dictionary = is_late ? none : encoder_for(owner, part.table);
    auto const theirs = part.keys_of(owner);
    auto const copied = theirs.device().is_host() ? std::vector<Key>() : to_host(stream_, theirs);
    View<Key const> const keys = theirs.device().is_host() ? theirs : View<Key const>(copied);
    auto order = dictionary.wait_encode_keys(on_host_, keys, batch.clock, round_.next_in(), *outgoing.bytes).order;
    if (shares_scales(tables_[number(part.table)]->options())) order = order_by_value(keys);
    for (auto& row : order) row += part.owners[number(owner)];
    copy<std::uint32_t>(stream_, part.remote_positions.view().slice(part.first_of(owner, me_), order.size()),
                        View<std::uint32_t const>(order));
    if (!stream_.device().is_host()) stream_.wait();  // `order` ends here
  }
}

void RoundExecutor::send_keys(Rank owner, OutgoingIntents const& outgoing, std::uint64_t tag, TrafficKind kind) {
  std::uint64_t keys = 0;
  for (auto const& intent : outgoing.intents) {
    for (auto const& part : intent.parts) keys += part.keys;
  }
  messenger_.count_compression(kind, keys * sizeof(Key), outgoing.bytes->size());
  messenger_.send_data(on_host_, owner, tag, outgoing.bytes->data(), outgoing.bytes->size(), kind, outgoing.bytes);
}

// -- intents of other ranks --

// Throws PeerError for an invalid intent. The intent of a late fetch is for the step that its reader trains or ends,
// which is at most two steps after the step that is applied here. Other intents arrive with the round of an earlier
// step.
void RoundExecutor::check_intent(Rank from, Intent const& intent, bool is_late) const {
  Clock const first = is_late ? round_.applied() + 1 : round_.clock() + 1;
  Clock const last = is_late ? round_.applied() + 2 : round_.clock() + kStepsAheadMax;
  if (from == me_) throw_peer_error(from, "announced a batch to itself");
  if (reader_batches_.contains({from, intent.clock})) throw_peer_error(from, "announced a batch twice");
  if (intent.clock < first || intent.clock > last) {
    throw_peer_error(
        from, fmt::format("announced a batch of step {} at step {}", number(intent.clock), number(round_.clock())));
  }
  auto const ahead = parts_ahead_.find(from);
  if ((ahead == parts_ahead_.end() ? 0 : ahead->second) + intent.parts.size() > kPartsAheadMax) {
    throw_peer_error(from, fmt::format("announced more than {} parts of batches ahead", kPartsAheadMax));
  }
  for (auto const& part : intent.parts) {
    if (number(part.table) >= tables_.size()) throw_peer_error(from, "announced keys of a table that does not exist");
  }
}

void RoundExecutor::receive_intents(Rank from, Message const& message, bool is_late, std::function<void()> then) {
  for (auto const& intent : message.intents) {
    check_intent(from, intent, is_late);
    auto& use = reader_batches_[{from, intent.clock}];
    use.is_late = is_late;
    for (auto const& part : intent.parts) use.parts.push_back({.table = part.table, .keys = part.keys});
    parts_ahead_[from] += intent.parts.size();
  }
  auto const bytes = std::make_shared<Array<std::uint8_t>>();
  auto const allocate = [bytes, size = message.key_bytes] {
    *bytes = Array<std::uint8_t>(Device::host(), size);
    return bytes->data();
  };
  auto const section = is_late ? Section::kLateFetchKeys : Section::kKeys;
  messenger_.receive_data(
      on_host_, from, tag(section, static_cast<std::uint64_t>(number(message.clock)), 0), message.key_bytes, allocate,
      [this, from, message, is_late, bytes, then = std::move(then)] {
        wait_resolve(from, message, is_late, {reinterpret_cast<char const*>(bytes->data()), bytes->size()});
        then();
      });
}

// Decodes the keys of all intents of a message, and finds or reserves their rows, all together.
void RoundExecutor::wait_resolve(Rank from, Message const& message, bool is_late, std::string_view bytes) try {
  std::vector<Array<Key>> keys;
  std::vector<TableShard::ShardKeys> read;
  for (auto const& intent : message.intents) {
    auto& use = reader_batches_.at({from, intent.clock});
    use.keys_received = true;
    for (auto& part : use.parts) {
      KeyDecoder none(0);
      auto& dictionary = is_late ? none : decoder_for(from, part.table);
      auto& table = *tables_[number(part.table)];
      auto keys_read = dictionary.decode(bytes, part.keys, intent.clock, message.clock).keys;
      if (shares_scales(table.options())) sort_keys(keys_read);
      part.ids = Array<std::uint32_t>(stream_.device(), keys_read.size());
      keys.push_back(to_device(stream_, keys_read));
      read.push_back({&table, keys.back(), part.ids});
      if (table.sends_deltas()) part.key_list = std::make_shared<Array<Key>>(to_device(stream_, keys_read));
    }
  }
  if (!bytes.empty()) throw comm::WireError("more bytes than the keys of its batches need");
  TableShard::wait_resolve(stream_, read);
  if (auto const repeated = TableShard::wait_find_repeated(stream_, read)) {
    throw_peer_error(from, fmt::format("announced key {} of table '{}' twice in a batch", number(repeated->key),
                                       read[repeated->part].shard->options().name));
  }
} catch (comm::WireError const& error) {
  throw_peer_error(from, fmt::format("announced {}", error.what()));
}

}  // namespace gpups::cache
