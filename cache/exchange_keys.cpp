// SPDX-License-Identifier: Apache-2.0
// The keys of batches that are announced: to their owners, and by readers.
#include <fmt/core.h>

#include <utility>

#include "cache/exchange.hpp"
#include "cache/row_format.hpp"
#include "comm/wire.hpp"

namespace gpups::cache {

std::size_t Exchange::dictionary_capacity(TableId table) const {
  return tables_[number(table)]->options().dictionary_keys / static_cast<std::size_t>(ranks_ - 1);
}

NamedKeys& Exchange::named_to(Rank owner, TableId table) {
  return named_.try_emplace({owner, table}, dictionary_capacity(table)).first->second;
}

HeardKeys& Exchange::heard_from(Rank reader, TableId table) {
  return heard_.try_emplace({reader, table}, dictionary_capacity(table)).first->second;
}

// -- to owners --

std::vector<Rank> Exchange::owners_of(Prepared::Impl const& batch) const {
  std::vector<Rank> owners;
  for (int q = 0; q < ranks_; ++q) {
    Rank const owner{static_cast<std::uint32_t>(q)};
    if (owner != me_ && !intent_for(owner, batch).parts.empty()) owners.push_back(owner);
  }
  return owners;
}

Intent Exchange::intent_for(Rank owner, Prepared::Impl const& batch) const {
  Intent intent{.clock = batch.clock, .parts = {}};
  std::size_t keys = 0;
  for (auto const& part : batch.parts) {
    intent.parts.push_back({part.table, part.owned_by(owner)});
    keys += part.owned_by(owner);
  }
  if (keys == 0) intent.parts.clear();
  return intent;
}

void Exchange::name_keys(Rank owner, Prepared::Impl& batch, bool urgent, Outgoing& outgoing) {
  outgoing.intents.push_back(intent_for(owner, batch));
  if (outgoing.bytes == nullptr) outgoing.bytes = std::make_shared<std::vector<std::uint8_t>>();
  for (auto& part : batch.parts) {
    if (part.owned_by(owner) == 0) continue;
    NamedKeys none(0);
    auto& dictionary = urgent ? none : named_to(owner, part.table);
    auto const theirs = part.keys_of(owner);
    auto const copied = theirs.device().is_host() ? std::vector<Key>() : to_host(stream_, theirs);
    View<Key const> const keys = theirs.device().is_host() ? theirs : View<Key const>(copied);
    auto order = dictionary.wait_name(on_host_, keys, batch.clock, round_.next_in(), *outgoing.bytes).order;
    if (shares_scales(tables_[number(part.table)]->options())) order = order_by_value(keys);
    for (auto& row : order) row += part.owners[number(owner)];
    copy<std::uint32_t>(stream_, part.places.view().slice(part.first_of(owner, me_), order.size()),
                        View<std::uint32_t const>(order));
    if (!stream_.device().is_host()) stream_.wait();  // the vector goes
  }
}

void Exchange::send_keys(Rank owner, Outgoing const& outgoing, std::uint64_t tag, TrafficKind kind) {
  std::uint64_t keys = 0;
  for (auto const& intent : outgoing.intents) {
    for (auto const& part : intent.parts) keys += part.keys;
  }
  mail_.count_coding(kind, keys * sizeof(Key), outgoing.bytes->size());
  mail_.send_data(on_host_, owner, tag, outgoing.bytes->data(), outgoing.bytes->size(), kind, outgoing.bytes);
}

// -- by readers --

// An urgent read is of the step that its reader is in or ends: at most two after what is applied here. Other batches
// come with the round of a step before theirs.
void Exchange::check_intent(Rank from, Intent const& intent, bool urgent) const {
  Clock const first = urgent ? round_.applied() + 1 : round_.clock() + 1;
  Clock const last = urgent ? round_.applied() + 2 : round_.clock() + kStepsAheadMax;
  if (from == me_) refuse_peer(from, "announced a batch to itself");
  if (uses_.contains({from, intent.clock})) refuse_peer(from, "announced a batch twice");
  if (intent.clock < first || intent.clock > last) {
    refuse_peer(from,
                fmt::format("announced a batch of step {} at step {}", number(intent.clock), number(round_.clock())));
  }
  auto const ahead = parts_ahead_.find(from);
  if ((ahead == parts_ahead_.end() ? 0 : ahead->second) + intent.parts.size() > kPartsAheadMax) {
    refuse_peer(from, fmt::format("announced more than {} parts of batches ahead", kPartsAheadMax));
  }
  for (auto const& part : intent.parts) {
    if (number(part.table) >= tables_.size()) refuse_peer(from, "named a table that is not there");
  }
}

void Exchange::take_keys(Rank from, Message const& message, bool urgent, std::function<void()> then) {
  for (auto const& intent : message.intents) {
    check_intent(from, intent, urgent);
    auto& use = uses_[{from, intent.clock}];
    use.urgent = urgent;
    for (auto const& part : intent.parts) use.parts.push_back({.table = part.table, .keys = part.keys});
    parts_ahead_[from] += intent.parts.size();
  }
  auto const bytes = std::make_shared<Array<std::uint8_t>>();
  auto const where = [bytes, size = message.key_bytes] {
    *bytes = Array<std::uint8_t>(Device::host(), size);
    return bytes->data();
  };
  auto const section = urgent ? Section::kUrgentKeys : Section::kKeys;
  mail_.take_data(on_host_, from, tag(section, static_cast<std::uint64_t>(number(message.clock)), 0), message.key_bytes,
                  where, [this, from, message, urgent, bytes, then = std::move(then)] {
                    wait_resolve(from, message, urgent, {reinterpret_cast<char const*>(bytes->data()), bytes->size()});
                    then();
                  });
}

// Finds the rows of the keys that a message announces, all at once.
void Exchange::wait_resolve(Rank from, Message const& message, bool urgent, std::string_view bytes) try {
  std::vector<Array<Key>> keys;
  std::vector<TableShard::KeysOfShard> read;
  for (auto const& intent : message.intents) {
    auto& use = uses_.at({from, intent.clock});
    use.named = true;
    for (auto& part : use.parts) {
      HeardKeys none(0);
      auto& dictionary = urgent ? none : heard_from(from, part.table);
      auto& table = *tables_[number(part.table)];
      auto heard = dictionary.hear(bytes, part.keys, intent.clock, message.clock).keys;
      if (shares_scales(table.options())) sort_keys(heard);
      part.ids = Array<std::uint32_t>(stream_.device(), heard.size());
      keys.push_back(to_device(stream_, heard));
      read.push_back({&table, keys.back(), part.ids});
      if (table.sends_changes()) part.key_list = std::make_shared<Array<Key>>(to_device(stream_, heard));
    }
  }
  if (!bytes.empty()) throw comm::WireError("more bytes of keys than its batches have");
  TableShard::wait_resolve(stream_, read);
  if (auto const repeated = TableShard::wait_find_repeated(stream_, read)) {
    refuse_peer(from, fmt::format("named key {} of table '{}' twice in a batch", number(repeated->key),
                                  read[repeated->part].shard->options().name));
  }
} catch (comm::WireError const& error) {
  refuse_peer(from, fmt::format("announced {}", error.what()));
}

}  // namespace gpups::cache
