// SPDX-License-Identifier: Apache-2.0
#include "cache/exchange.hpp"

#include <fmt/core.h>

#include "gpups/error.hpp"
#include "kernels/check.hpp"
#include "kernels/key_index.hpp"
#include "kernels/nvtx.hpp"

namespace gpups::cache {
namespace {

// Calls `then` when it has been called itself `count` times; at once for none.
std::function<void()> after_calls(std::size_t count, std::function<void()> then) {
  if (count == 0) {
    then();
    return [] {};
  }
  return [left = std::make_shared<std::size_t>(count), then = std::move(then)] {
    if (--*left == 0) then();
  };
}

}  // namespace

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
  for (auto& part : batch->parts) {
    auto& shard = *tables_[number(part.table)];
    part.ids = Array<std::uint32_t>(stream_.device(), part.owned_by(me_));
    shard.wait_resolve(stream_, part.keys_of(me_), part.ids);
    part.values = Matrix<float>(stream_.device(), part.rows - part.owned_by(me_), shard.dim());
    for (int q = 0; q < ranks_; ++q) {
      Rank const owner{static_cast<std::uint32_t>(q)};
      if (owner != me_ && part.owned_by(owner) > 0) ++missing;
    }
  }
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
    use.parts.push_back({.table = part.table, .keys = std::make_shared<Array<Key>>(), .ids = {}, .sums = {}});
    if (part.keys > 0) ++sections;
  }
  auto const resolve = [this, id, then = std::move(then)] {
    auto& named = uses_.at(id);
    named.named = true;
    for (auto& part : named.parts) {
      part.ids = Array<std::uint32_t>(stream_.device(), part.keys->size());
      tables_[number(part.table)]->wait_resolve(stream_, *part.keys, part.ids);
      part.keys.reset();
    }
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
    auto const values = std::make_shared<Matrix<float>>(stream_.device(), part.ids.size(), shard.dim());
    shard.gather(stream_, part.ids, *values);
    mail_.send_data(stream_, to, tag(section, static_cast<std::uint64_t>(number(clock)), p), values->view().data(),
                    values->view().flat().bytes(), kind, values);
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
    auto const where = [batch, values] { return values.data(); };
    mail_.take_data(stream_, from, tag(section, static_cast<std::uint64_t>(number(clock)), p), values.flat().bytes(),
                    where, taken);
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

// -- the round --

void Exchange::act(Round::Action const& action) {
  switch (action.step) {
    case Round::Step::kSendIn:
      return send_in();
    case Round::Step::kTakeIn:
      return take_in(action.from, action.message);
    case Round::Step::kApply:
      return apply();
    case Round::Step::kSendOut:
      return send_out();
    case Round::Step::kTakeOut:
      return take_out(action.from, action.message);
    case Round::Step::kComplete:
      return complete();
  }
}

std::string Exchange::fault_of(Prepared::Impl const& batch) {
  for (auto const& part : batch.parts) {
    auto const row = to_host(stream_, part.fault.view())[0];
    if (row == kernels::kNoRow) continue;
    return fmt::format(
        "the gradient of key {} in table '{}' is not finite or too large on rank {} at step {} (the step "
        "was refused on all ranks): check the data and lower the learning rate",
        number(to_host(stream_, part.keys.view().slice(row, 1))[0]), tables_[number(part.table)]->options().name,
        number(me_), number(batch.clock));
  }
  return {};
}

void Exchange::step_ended(BatchPtr const& batch, std::uint32_t signal) {
  ended_.push_back({batch, signal});
  begin_round();
}

void Exchange::begin_round() {
  if (ended_.empty() || round_.phase() != Round::Phase::kTraining) return;
  // A batch that was pushed without waiting for its rows: while owners send them, the step cannot end.
  auto const place = batches_.find(round_.clock());
  if (place != batches_.end() && place->second.missing > 0) return;
  auto const [batch, signal] = std::move(ended_.front());
  ended_.pop_front();
  current_ = batch;
  Round::Report report{.samples = 0, .signal = signal, .refusal = {}};
  if (batch != nullptr) {
    for (auto const& event : batch->read_events) stream_.after(event);
    stream_.after(batch->push_event);
    report.samples = batch->samples;
    report.refusal = fault_of(*batch);
  }
  round_.step_ended(report);
}

void Exchange::send_in() {
  kernels::NvtxRange const range("round: in");
  for (int q = 0; q < ranks_; ++q) {
    Rank const owner{static_cast<std::uint32_t>(q)};
    if (owner == me_) continue;
    Message message{.kind = MessageKind::kIn,
                    .clock = round_.clock(),
                    .samples = round_.own().samples,
                    .signal = round_.own().signal,
                    .error = round_.own().refusal};
    bool const gradients = current_ != nullptr && message.error.empty() && !intent_for(owner, *current_).parts.empty();
    if (gradients) message.parts = current_->parts.size();
    for (auto const& [clock, announced] : batches_) {
      auto const intent = intent_for(owner, *announced.batch);
      if (!announced.told && !intent.parts.empty()) message.intents.push_back(intent);
    }
    mail_.send(owner, message);

    for (std::size_t p = 0; gradients && p < current_->parts.size(); ++p) {
      auto const sums = current_->parts[p].sums_of(owner);
      mail_.send_data(stream_, owner, tag(Section::kGradients, static_cast<std::uint64_t>(number(round_.clock())), p),
                      sums.data(), sums.flat().bytes(), &Traffic::gradients, current_);
    }
    for (auto const& [clock, announced] : batches_) {
      if (!announced.told) send_keys(owner, announced.batch, Section::kKeys, &Traffic::intents);
    }
  }
  for (auto& [clock, announced] : batches_) announced.told = true;
}

void Exchange::take_in(Rank from, Message const& message) {
  UseId const id{from, round_.clock()};
  auto const use = uses_.find(id);
  bool const gradients = message.parts > 0;
  if (gradients && (use == uses_.end() || use->second.parts.size() != message.parts)) {
    refuse_peer(from, "sent gradients that it did not announce");
  }
  if (use != uses_.end() && !use->second.named) refuse_peer(from, "ended a step whose keys it has not sent yet");
  std::size_t sections = message.intents.size();
  for (std::size_t p = 0; p < message.parts; ++p) sections += use->second.parts[p].ids.empty() ? 0 : 1;
  auto const taken = after_calls(sections, [this, from] { round_.taken(from); });

  for (std::size_t p = 0; p < message.parts; ++p) {
    auto& part = use->second.parts[p];
    if (part.ids.empty()) continue;
    std::size_t const rows = part.ids.size(), dim = tables_[number(part.table)]->dim();
    part.sums = std::make_shared<Matrix<std::int64_t>>();
    auto const where = [sums = part.sums, device = stream_.device(), rows, dim] {
      *sums = Matrix<std::int64_t>(device, rows, dim);
      return sums->view().data();
    };
    mail_.take_data(stream_, from, tag(Section::kGradients, static_cast<std::uint64_t>(number(round_.clock())), p),
                    rows * row_stride(dim) * sizeof(std::int64_t), where, taken);
  }
  for (auto const& intent : message.intents) take_keys(from, intent, Section::kKeys, false, taken);
}

void Exchange::apply() {
  kernels::NvtxRange const range("round: apply");
  Clock const step = round_.applied();
  for (auto const& [id, use] : uses_) {
    if (id.second <= step && !use.named) refuse_peer(id.first, "read rows for a step that it had ended");
  }
  for (std::size_t t = 0; round_.all().refusal.empty() && t < tables_.size(); ++t) {
    std::vector<RowSums> lists;
    if (current_ != nullptr) {
      for (auto& part : current_->parts) {
        if (number(part.table) == t && !part.applied) lists.push_back({part.ids, part.sums_of(me_)});
      }
    }
    for (auto& [id, use] : uses_) {
      if (id.second != step) continue;
      for (auto& part : use.parts) {
        if (number(part.table) == t && part.sums != nullptr) lists.push_back({part.ids, *part.sums});
      }
    }
    tables_[t]->wait_apply(stream_, lists, step, round_.all().samples);
  }
  for (auto const& [id, use] : uses_) {
    if (id.second <= step) parts_ahead_[id.first] -= use.parts.size();
  }
  std::erase_if(uses_, [step](auto const& use) { return use.first.second <= step; });

  auto const waiting = std::move(unanswered_);
  unanswered_.clear();
  for (auto const& use : waiting) answer_urgent(use);
}

void Exchange::send_out() {
  kernels::NvtxRange const range("round: out");
  Clock const next = round_.clock() + 1;
  for (int q = 0; q < ranks_; ++q) {
    Rank const reader{static_cast<std::uint32_t>(q)};
    if (reader == me_) continue;
    auto const use = uses_.find({reader, next});
    bool const values = use != uses_.end() && !use->second.urgent;
    mail_.send(reader,
               {.kind = MessageKind::kOut, .clock = round_.clock(), .parts = values ? use->second.parts.size() : 0});
    if (values) send_values(reader, next, Section::kValues, &Traffic::refreshes);
  }
}

void Exchange::take_out(Rank from, Message const& message) {
  auto const taken = [this, from] { round_.taken(from); };
  Clock const next = round_.clock() + 1;
  auto const found = batches_.find(next);
  bool const expected = found != batches_.end() && found->second.told && !found->second.urgent &&
                        !intent_for(from, *found->second.batch).parts.empty();
  if (expected != (message.parts > 0)) refuse_peer(from, "sent other values than were announced");
  expected ? take_values(from, next, Section::kValues, taken) : taken();
}

void Exchange::complete() {
  Clock const step = round_.clock() - 1;
  batches_.erase(step);
  current_ = nullptr;
  on_complete(step, round_.all());
  check_ready(round_.clock());
  begin_round();
}

}  // namespace gpups::cache
