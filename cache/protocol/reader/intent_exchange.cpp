// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/reader/intent_exchange.hpp"

#include <utility>

#include "kernels/base/check.hpp"
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

}  // namespace

KeyEncoder& IntentExchange::encoder_for(Rank home, TableId table) {
  return encoders_
      .try_emplace({home, table}, state_.dictionary_capacity(table, state_.plain_keys.sent_to[number(home)]))
      .first->second;
}

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
      lists.push_back({part.keys_at(home), there, part.reads.of(home), part.homes[number(home)]});
      of_home.parts.push_back({part.table, there, memory});
      end += n;
    }
    of_home.all = {.keys = memory->view().slice(begin, end - begin), .memory = memory};
  }
  GPUPS_ASSERT(end == count);  // every row of another home is in the list once
  kernels::sort_keys(state_.stream, lists);
  return sorted;
}

std::vector<ListKeys> IntentExchange::own_keys(PreparedBatch::Impl& batch) {
  std::size_t count = 0;
  for (auto const& part : batch.parts) count += part.rows_at(state_.me);
  auto const memory = std::make_shared<Array<Key>>(state_.stream.device(), count);
  auto const order = std::make_shared<Array<std::uint32_t>>(state_.stream.device(), count);
  std::vector<ListKeys> own;
  std::vector<kernels::SortedKeys> lists;
  std::size_t end = 0;
  for (auto& part : batch.parts) {
    std::size_t const n = part.rows_at(state_.me);
    part.own_order = {order->view().slice(end, n), order};
    auto const there = memory->view().slice(std::exchange(end, end + n), n);
    lists.push_back({part.keys_at(state_.me), there, part.own_order.positions, part.homes[number(state_.me)]});
    own.push_back({part.table, there, memory});
  }
  kernels::sort_keys(state_.stream, lists);
  return own;
}

// Appends the batch's keys of other homes to `outgoing`. Late fetches are encoded without a dictionary.
void IntentExchange::wait_encode(PreparedBatch::Impl& batch, bool is_late, std::map<Rank, OutgoingIntents>& outgoing) {
  std::map<Rank, std::vector<PartKeys>> on_host;
  kernels::HostReads reads(state_.stream);
  auto const sorted = sort(batch);
  for (auto const& [home, keys] : sorted) {
    auto& to = outgoing[home];
    to.intents.push_back(intent_for(home, batch));
    to.keys += keys.all.keys.size();
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
  std::vector<KeyEncoder::List> lists;
  for (auto const& [home, parts] : on_host) {
    for (auto const& [table, keys] : parts) {
      if (keys.empty()) continue;
      auto* const dictionary = is_late ? nullptr : &encoder_for(home, table);
      lists.push_back({dictionary, View<Key const>(keys), outgoing[home].bytes.get()});
    }
  }
  KeyEncoder::encode(state_.on_host, lists);
}

void IntentExchange::encode_known(Rank home, TableId table, View<Key const> keys, std::vector<std::uint8_t>& wire) {
  encoder_for(home, table).encode_known(keys, wire);
}

}  // namespace gpups::cache
