// SPDX-License-Identifier: Apache-2.0
// RoundExecutor: the actions of each phase of the round.
#include <fmt/core.h>

#include "cache/protocol/countdown_callback.hpp"
#include "cache/protocol/round_executor.hpp"
#include "kernels/key_index.hpp"
#include "kernels/nvtx.hpp"

namespace gpups::cache {

void RoundExecutor::execute(Round::Action const& action) {
  switch (action.kind) {
    case Round::ActionKind::kSendGradients:
      return send_gradient_phase();
    case Round::ActionKind::kReceiveGradients:
      return receive_gradient_phase(action.from, action.message);
    case Round::ActionKind::kApply:
      return apply();
    case Round::ActionKind::kSendRefreshes:
      return send_refresh_phase();
    case Round::ActionKind::kReceiveRefreshes:
      return receive_refresh_phase(action.from, action.message);
    case Round::ActionKind::kComplete:
      return complete();
  }
}

// Returns why the step of this batch must be rejected, or an empty text. Waits for the stream.
std::string RoundExecutor::rejection_of(PreparedBatch::Impl const& batch) {
  auto const entries = to_host(stream_, batch.wrong_numbers.view());
  for (std::size_t p = 0; p < entries.size(); ++p) {
    if (entries[p] == kernels::kNoRow) continue;
    return fmt::format(
        "rank {} pushed a source index for entry {} of table '{}' at step {} that is not below the number of sources "
        "(the step was rejected on all ranks): give indices below the number of sources",
        number(me_), entries[p], tables_[number(batch.parts[p].table)]->options().name, number(batch.clock));
  }
  auto const rows = to_host(stream_, batch.bad_rows.view());
  for (std::size_t p = 0; p < rows.size(); ++p) {
    auto const& part = batch.parts[p];
    auto const row = rows[p];
    if (row == kernels::kNoRow) continue;
    if (part.applied)
      tables_[number(part.table)]->throw_bad_row(stream_,
                                                 row);  // rows have changed already, so the step cannot be rejected
    return fmt::format(
        "the gradient of key {} in table '{}' is not finite or too large on rank {} at step {} (the step "
        "was rejected on all ranks): check the data and lower the learning rate",
        number(to_host(stream_, part.keys.slice(row, 1))[0]), tables_[number(part.table)]->options().name, number(me_),
        number(batch.clock));
  }
  return {};
}

void RoundExecutor::end_step(BatchPtr const& batch, std::uint32_t signal) {
  ended_.push_back({batch, signal, std::exchange(flush_residuals_, false)});
  begin_round();
}

void RoundExecutor::begin_round() {
  if (ended_.empty() || round_.phase() != Round::Phase::kTraining) return;
  // The batch was pushed without wait_ready(), and owners are still sending its rows: the round must wait for these.
  auto const place = batches_.find(round_.clock());
  if (place != batches_.end() && place->second.missing > 0) return;
  auto const [batch, signal, flush_residuals] = std::move(ended_.front());
  ended_.pop_front();
  if (flush_residuals) residuals_.send_all();
  current_ = batch;
  Round::StepReport report{.samples = 0, .signal = signal, .rejection = {}};
  if (batch != nullptr) {
    for (auto const& event : batch->read_events) stream_.after(event);
    stream_.after(batch->push_event);
    report.samples = batch->samples;
    report.rejection = rejection_of(*batch);
  }
  round_.end_step(report);
}

void RoundExecutor::send_gradient_phase() {
  kernels::NvtxRange const range("round: in");
  for (int q = 0; q < ranks_; ++q) {
    Rank const owner{static_cast<std::uint32_t>(q)};
    if (owner == me_) continue;
    Message message{.kind = MessageKind::kGradientPhase,
                    .clock = round_.clock(),
                    .samples = round_.own().samples,
                    .signal = round_.own().signal,
                    .error = round_.own().rejection};
    std::vector<std::function<void()>> sends;
    if (current_ != nullptr && message.error.empty()) message.gradients = send_gradients(owner, sends);
    if (message.error.empty()) message.flushed = send_flushed(owner, sends);
    auto const waiting = outgoing_.extract(owner);
    auto const keys = waiting.empty() ? OutgoingIntents{} : waiting.mapped();
    message.intents = keys.intents;
    if (keys.bytes != nullptr) message.key_bytes = keys.bytes->size();
    messenger_.send(owner, message);
    for (auto const& send : sends) send();
    if (keys.bytes == nullptr) continue;
    send_keys(owner, keys, tag(Section::kKeys, static_cast<std::uint64_t>(number(round_.clock())), 0),
              &Traffic::intents);
  }
  for (auto& [clock, announced] : batches_) announced.sent_to_owners = true;
}

void RoundExecutor::apply() {
  kernels::NvtxRange const range("round: apply");
  Clock const step = round_.applied();
  for (auto const& [id, use] : reader_batches_) {
    if (id.second <= step && !use.keys_received)
      throw_peer_error(id.first, "announced a batch for a step that it had ended");
  }
  if (round_.all().samples > 0) samples_ = round_.all().samples;
  bool const rejected = !round_.all().rejection.empty();
  resends_all_values_ = residuals_.sends_all() && !rejected;
  residuals_.wait_end_step(stream_, rejected);
  for (std::size_t t = 0; round_.all().rejection.empty() && t < tables_.size(); ++t) {
    std::vector<RowSums> lists;
    if (current_ != nullptr) {
      for (auto& part : current_->parts) {
        if (number(part.table) == t && !part.applied)
          lists.push_back({.ids = part.ids, .sums = part.sums_of(me_), .offsets = part.offsets_of(me_)});
      }
    }
    for (auto& [id, use] : reader_batches_) {
      if (id.second != step) continue;
      for (auto& part : use.parts) {
        if (number(part.table) != t) continue;
        if (part.compressed != nullptr) lists.push_back(wait_decode_compressed(id.first, part));
        if (part.sums == nullptr) continue;
        lists.push_back(
            {.ids = part.ids, .sums = {}, .received = part.sums.get(), .counts = part.counts.view().flat()});
      }
    }
    std::deque<FlushedSums> flushed;
    for (auto const& part : flushed_) {
      if (number(part.rows.table) == t) lists.push_back(wait_decode_flushed(part, flushed.emplace_back()));
    }
    for (auto const& chunk : restored_) {
      if (number(chunk.table) == t) lists.push_back(wait_read_restored(chunk, flushed.emplace_back()));
    }
    // Flushed residuals are divided by the samples of this step or, if it has none, by those of the last step that had.
    bool const all_late = round_.all().samples == 0 && !flushed.empty();
    tables_[t]->wait_apply(stream_, lists, step, all_late ? samples_ : round_.all().samples);
  }
  flushed_.clear();
  if (round_.all().rejection.empty()) restored_.clear();
  for (auto const& [id, use] : reader_batches_) {
    if (id.second <= step) parts_ahead_[id.first] -= use.parts.size();
  }
  std::erase_if(reader_batches_, [step](auto const& use) { return use.first.second <= step; });

  auto const waiting = std::move(unanswered_);
  unanswered_.clear();
  for (auto const& use : waiting) reply_late(use);
}

void RoundExecutor::send_refresh_phase() {
  kernels::NvtxRange const range("round: out");
  Clock const next = round_.clock() + 1;
  for (int q = 0; q < ranks_; ++q) {
    Rank const reader{static_cast<std::uint32_t>(q)};
    if (reader == me_) continue;
    auto const use = reader_batches_.find({reader, next});
    bool const values = use != reader_batches_.end() && !use->second.is_late;
    Message const message{
        .kind = MessageKind::kRefreshPhase, .clock = round_.clock(), .parts = values ? use->second.parts.size() : 0};
    values ? send_values(reader, message, Section::kValues, &Traffic::refreshes) : messenger_.send(reader, message);
  }
}

void RoundExecutor::receive_refresh_phase(Rank from, Message const& message) {
  auto const taken = [this, from] { round_.on_data_received(from); };
  Clock const next = round_.clock() + 1;
  auto const found = batches_.find(next);
  bool const expected = found != batches_.end() && found->second.sent_to_owners && !found->second.is_late &&
                        !intent_for(from, *found->second.batch).parts.empty();
  if (expected != (message.parts > 0)) throw_peer_error(from, "sent values for other rows than were announced");
  expected ? receive_refreshes(from, next, Section::kValues, message.sent, taken) : taken();
}

void RoundExecutor::complete() {
  Clock const step = round_.clock() - 1;
  batches_.erase(step);
  if (current_ != nullptr) {
    for (auto& part : current_->parts) part.end_step();
  }
  current_ = nullptr;
  on_complete(step, round_.all());
  check_ready(round_.clock());
  begin_round();
}

}  // namespace gpups::cache
