// SPDX-License-Identifier: Apache-2.0
// What is announced to owners, and the values that they send.
#include "cache/exchange.hpp"

#include <fmt/core.h>

#include "cache/after_calls.hpp"
#include "gpups/error.hpp"
#include "kernels/check.hpp"

namespace gpups::cache {

Exchange::Exchange(Rank me, int ranks, Stream& stream, Mail& mail, Round& round,
                   std::vector<std::unique_ptr<TableShard>>& tables)
    : me_(me), ranks_(ranks), stream_(stream), mail_(mail), round_(round), tables_(tables) {}

void Exchange::refuse_peer(Rank peer, std::string const& what) const {
  throw PeerError(peer, fmt::format("rank {} {} (rank {} cannot go on with it): check that all ranks run the same "
                                    "program and configuration",
                                    number(peer), what, number(me_)));
}

// -- intents --

void Exchange::announce(BatchPtr const& batch) {
  std::size_t missing = 0;
  std::vector<TableShard::KeysOfShard> mine;
  for (auto& part : batch->parts) {
    auto& shard = *tables_[number(part.table)];
    part.ids = Array<std::uint32_t>(stream_.device(), part.owned_by(me_));
    mine.push_back({&shard, part.keys_of(me_), part.ids});
    part.values = shard.numbers(stream_.device(), part.rows - part.owned_by(me_));
    for (int q = 0; q < ranks_; ++q) {
      Rank const owner{static_cast<std::uint32_t>(q)};
      if (owner != me_ && part.owned_by(owner) > 0) ++missing;
    }
  }
  TableShard::wait_resolve(stream_, mine);
  auto [place, added] = batches_.emplace(batch->clock, Announced{.batch = batch, .missing = missing});
  GPUPS_ASSERT(added);
  if (missing > 0 && batch->clock <= round_.next_in()) tell_urgently(place->second);
  check_ready(batch->clock);
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

void Exchange::send_keys(Rank owner, BatchPtr const& batch, Section section, TrafficKind kind) {
  for (std::size_t p = 0; p < batch->parts.size(); ++p) {
    auto const keys = batch->parts[p].keys_of(owner);
    mail_.send_data(stream_, owner, tag(section, static_cast<std::uint64_t>(number(batch->clock)), p), keys.data(),
                    keys.bytes(), kind, batch);
  }
}

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

void Exchange::take_keys(Rank from, Intent const& intent, Section section, bool urgent, std::function<void()> then) {
  check_intent(from, intent, urgent);
  UseId const id{from, intent.clock};
  auto& use = uses_[id];
  use.urgent = urgent;
  parts_ahead_[from] += intent.parts.size();
  std::size_t sections = 0;
  for (auto const& part : intent.parts) {
    use.parts.push_back(
        {.table = part.table, .keys = std::make_shared<Array<Key>>(), .ids = {}, .sums = {}, .offsets = {}});
    if (part.keys > 0) ++sections;
  }
  auto const resolve = [this, id, then = std::move(then)] {
    auto& named = uses_.at(id);
    named.named = true;
    std::vector<TableShard::KeysOfShard> read;
    for (auto& part : named.parts) {
      part.ids = Array<std::uint32_t>(stream_.device(), part.keys->size());
      read.push_back({tables_[number(part.table)].get(), *part.keys, part.ids});
    }
    TableShard::wait_resolve(stream_, read);
    for (auto& part : named.parts) part.keys.reset();
    then();
  };
  auto const taken = after_calls(sections, resolve);
  for (std::size_t p = 0; p < intent.parts.size(); ++p) {
    std::size_t const count = intent.parts[p].keys;
    if (count == 0) continue;
    auto const where = [keys = use.parts[p].keys, device = stream_.device(), count] {
      *keys = Array<Key>(device, count);
      return keys->data();
    };
    mail_.take_data(stream_, from, tag(section, static_cast<std::uint64_t>(number(intent.clock)), p),
                    count * sizeof(Key), where, taken);
  }
}

// -- values --

void Exchange::send_values(Rank to, Clock clock, Section section, TrafficKind kind) {
  auto& use = uses_.at({to, clock});
  for (std::size_t p = 0; p < use.parts.size(); ++p) {
    auto& part = use.parts[p];
    auto& shard = *tables_[number(part.table)];
    auto const values = std::make_shared<kernels::NumberMatrix>(shard.numbers(stream_.device(), part.ids.size()));
    shard.gather_numbers(stream_, part.ids, values->view());
    mail_.send_data(stream_, to, tag(section, static_cast<std::uint64_t>(number(clock)), p), values->view().data,
                    values->view().bytes(), kind, values);
  }
}

void Exchange::take_values(Rank from, Clock clock, Section section, std::function<void()> then) {
  auto& announced = batches_.at(clock);
  auto const& batch = announced.batch;
  std::size_t sections = 0;
  for (auto const& part : batch->parts) sections += part.owned_by(from) > 0 ? 1 : 0;
  auto const taken = after_calls(sections, [this, clock, sections, then = std::move(then)] {
    batches_.at(clock).missing -= sections;
    then();
  });
  for (std::size_t p = 0; p < batch->parts.size(); ++p) {
    auto const& part = batch->parts[p];
    if (part.owned_by(from) == 0) continue;
    auto const values = part.values_of(from, me_);
    auto const where = [batch, values] { return values.data; };
    mail_.take_data(stream_, from, tag(section, static_cast<std::uint64_t>(number(clock)), p), values.bytes(), where,
                    taken);
  }
}

void Exchange::check_ready(Clock clock) {
  auto const found = batches_.find(clock);
  if (found == batches_.end() || found->second.missing > 0) return;
  if (round_.clock() != clock || round_.phase() != Round::Phase::kTraining) return;
  auto& batch = *found->second.batch;
  batch.ready_event = stream_.record();
  batch.ready = true;
  begin_round();  // its step may have ended already
}

std::vector<Rank> Exchange::awaited() const {
  std::vector<Rank> ranks;
  auto const found = batches_.find(round_.clock());
  if (found == batches_.end() || found->second.missing == 0) return ranks;
  for (int q = 0; q < ranks_; ++q) {
    Rank const owner{static_cast<std::uint32_t>(q)};
    if (owner != me_ && !intent_for(owner, *found->second.batch).parts.empty()) ranks.push_back(owner);
  }
  return ranks;
}

}  // namespace gpups::cache
