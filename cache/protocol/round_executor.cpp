// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/round_executor.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "cache/wire/store_messenger.hpp"
#include "gpups/error.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/nvtx.hpp"
#include "kernels/base/overloaded.hpp"
#include "kernels/rows/row_storage.hpp"

namespace gpups::cache {

RoundExecutor::RoundExecutor(Rank me, int ranks, Stream& stream, StoreMessenger& messenger, Round& round,
                             TableShards& tables, OwnerDirectories& placement)
    : state_{.me = me,
             .ranks = ranks,
             .stream = stream,
             .on_host = stream.device().is_host() ? stream.sibling() : Stream(Device::host(), stream.threads()),
             .messenger = messenger,
             .round = round,
             .tables = tables,
             .placement = placement,
             .plain_keys = {std::vector<bool>(static_cast<std::size_t>(ranks)),
                            std::vector<bool>(static_cast<std::size_t>(ranks))}},
      planner_(state_),
      router_(state_),
      intents_(state_),
      announced_(state_, planner_),
      leased_(state_),
      residuals_(state_, intents_, announced_),
      finder_(state_),
      gradients_(state_, residuals_),
      values_(state_, residuals_),
      moves_(state_),
      late_fetches_(state_, intents_, announced_, planner_, router_, finder_, values_,
                    [this](Clock clock) { check_ready(clock); }) {}

// -- the end of a step --

// Returns why the step of this batch must be rejected, or an empty text. wrong_numbers, bad_rows: those of the batch.
std::string RoundExecutor::rejection_of(PreparedBatch::Impl const& batch, std::vector<std::uint32_t> const& entries,
                                        std::vector<std::uint32_t> const& rows) {
  auto& stream = state_.stream;
  for (std::size_t p = 0; p < entries.size(); ++p) {
    if (entries[p] == kernels::kNoRow) continue;
    return fmt::format(
        "rank {} pushed a source index for entry {} of table '{}' at step {} that is not below the number of sources "
        "(the step was rejected on all ranks): give indices below the number of sources",
        number(state_.me), entries[p], state_.table(batch.parts[p].table).options().name, number(batch.clock));
  }
  for (std::size_t p = 0; p < rows.size(); ++p) {
    auto const& part = batch.parts[p];
    auto const row = rows[p];
    if (row == kernels::kNoRow) continue;
    auto const& shard = state_.table(part.table);
    if (part.applied) shard.throw_bad_row(stream, row);  // rows have changed, so the step cannot be rejected
    return fmt::format(
        "the gradient of key {} in table '{}' is not finite or too large on rank {} at step {} (the step "
        "was rejected on all ranks): check the data, or start again with a lower learning rate",
        number(to_host(stream, part.keys.slice(row, 1))[0]), shard.options().name, number(state_.me),
        number(batch.clock));
  }
  return {};
}

void RoundExecutor::end_step(BatchPtr const& batch, std::uint32_t signal) {
  ended_.push_back({batch, signal, std::exchange(flush_residuals_, false)});
  begin_round();
}

void RoundExecutor::begin_round() {
  if (ended_.empty() || state_.round.phase() != Round::Phase::kTraining) return;
  if (state_.round.announces_next()) return state_.round.begin_announcing();  // complete() begins the step's
  // The batch was pushed without wait_ready(), and owners are still sending its rows: the round must wait for these.
  auto const place = state_.batches.find(state_.round.clock());
  if (place != state_.batches.end() && place->second.fetches > 0) return;
  auto const [batch, signal, flush_residuals] = std::move(ended_.front());
  ended_.pop_front();
  if (flush_residuals) residuals_.send_all();
  // Steps end in order, one round after another, and a pushed batch has its rows.
  GPUPS_ASSERT(state_.current == nullptr);
  GPUPS_ASSERT(batch == nullptr || batch->clock == state_.round.clock());
  GPUPS_ASSERT(batch == nullptr || (place != state_.batches.end() && has_rows(place->second)));
  state_.current = batch;
  StepReport report{.signal = signal};
  if (batch != nullptr) {
    for (auto const& event : batch->read_events) state_.stream.after(event);
    state_.stream.after(batch->push_event);
    report.samples = batch->samples;
    kernels::HostReads reads(state_.stream);
    std::vector<std::uint32_t> wrong_numbers, bad_rows;
    reads.add<std::uint32_t>(batch->wrong_numbers.view(), wrong_numbers);
    reads.add<std::uint32_t>(batch->bad_rows.view(), bad_rows);
    if (state_.staleness > 0) state_.current = leased_.join_sums(*batch, reads);
    gradients_.pack(reads);
    reads.wait();
    if (state_.staleness > 0) leased_.end_join(batch->clock, report.rejection);
    auto const rejection = rejection_of(*batch, wrong_numbers, bad_rows);
    if (!rejection.empty()) report.rejection = rejection;
  }
  state_.round.end_step(report);
}

// -- the phases of a round --

void RoundExecutor::execute(Round::Action const& action) {
  auto const run = kernels::Overloaded{
      [this](Round::SendGradients) { send_gradient_phase(); },
      [this](Round::ReceiveGradients const& one) { receive_gradient_phase(one.from, one.message); },
      [this](Round::Apply) { apply(); },
      [this](Round::SendRefreshes) { send_refresh_phase(); },
      [this](Round::ReceiveRefreshes const& one) { receive_refresh_phase(one.from, one.message); },
      [this](Round::Complete) { complete(); },
  };
  std::visit(run, action);
}

void RoundExecutor::send_gradient_phase() {
  kernels::NvtxRange const range("round: in");
  GPUPS_ASSERT(state_.round.phase() == Round::Phase::kGradientPhase);
  wait_plan();  // its forwards and routes travel with the gradients
  auto all_forwards = planner_.wait_take_forwards();
  auto all_routes = planner_.take_routes();
  StepReport const report = state_.round.own();
  std::map<Rank, std::vector<GradientBytes>> gradients;
  std::map<Rank, std::vector<std::function<void()>>> all_sends;
  if (report.rejection.empty() && state_.round.is_of_step()) {
    for (Rank const owner : state_.others()) gradients[owner] = gradients_.wait_send(owner, all_sends[owner]);
    residuals_.wait_encode();
  }
  for (Rank const owner : state_.others()) {
    GradientPhase message{.clock = state_.round.clock(), .report = report};
    auto& sends = all_sends[owner];
    message.gradients = std::move(gradients[owner]);
    message.flushed = residuals_.send(owner, sends);
    auto const intents = intents_.take(owner);
    auto const& forwards = all_forwards[owner];
    auto const& routes = all_routes[owner];
    message.intents = intents.header();
    message.forwards = forwards.header();
    message.routes = routes.header();
    state_.messenger.send(owner, message);
    for (auto const& send : sends) send();
    send_keys(state_, owner, intents, tag(Section::kKeys, state_.step(), 0), &Traffic::intents);
    send_keys(state_, owner, forwards, tag(Section::kForwardKeys, state_.step(), 0), &Traffic::intents);
    send_routes(state_, owner, routes, tag(Section::kRoutes, state_.step(), 0), &Traffic::intents);
  }
  // Intents for a step travel with one of the rounds before it, so nothing of this round is left.
  GPUPS_ASSERT(std::all_of(own_intents_.begin(), own_intents_.end(), [this](auto const& intent) {
    return intent.first > state_.round.clock() + (state_.placement.any_moved ? 1 : 0);
  }));
  // This rank's own intents reach its planner with those of other ranks, so plans depend on the steps of announcements
  // alone.
  // The plans that consider a batch begin two rounds after that of its announcement.
  Clock const seen_from = state_.round.clock() + 2;
  for (auto& [clock, parts] : std::exchange(own_intents_, {})) {
    bool const is_late = state_.round.clock() > first_ && seen_from + state_.rules.window - 1 > clock;
    if (state_.rows_move() && is_late) ++late_batches_;
    planner_.announce(state_.me, clock, std::move(parts));
  }
  for (auto& [clock, pending] : state_.batches) pending.sent = true;
}

void RoundExecutor::receive_gradient_phase(Rank from, GradientPhase const& message) {
  gradients_.check(from, message.gradients);
  residuals_.check(from, message.flushed);
  bool const is_empty = message.report == StepReport{} && message.gradients.empty() && message.flushed.empty();
  if (!state_.round.is_of_step() && !is_empty) {
    state_.throw_peer_error(from, "sent gradients or a report before its first step");
  }
  // Counts: the transfers of gradients; keys and sums of each list of flushed rows; and intents, forwards and routes.
  auto const taken = countdown_callback(gradients_.transfers(from, message.gradients) + 2 * message.flushed.size() + 3,
                                        [this, from] { state_.round.on_data_received(from); });
  gradients_.receive(from, message.gradients, taken);
  residuals_.receive(from, message.flushed, taken);
  announced_.receive(from, message.intents, taken);
  announced_.receive_forwards(from, message.forwards, taken);
  router_.receive(from, message.clock + 1, message.routes, tag(Section::kRoutes, state_.step(), 0), taken);
}

// Returns this rank's batch of a step if its routes have arrived; null if it has none. The rows that move before the
// step that is applied have arrived or left, so the router finds the rows that this rank owns from then on.
PendingBatch* RoundExecutor::batch_to_route(Clock step) {
  auto const found = state_.batches.find(step);
  if (found == state_.batches.end() || found->second.routed || found->second.is_late) return nullptr;
  return &found->second;
}

void RoundExecutor::apply() {
  kernels::NvtxRange const range("round: apply");
  Clock const step = state_.round.applied();
  GPUPS_ASSERT(state_.round.phase() == Round::Phase::kRefreshPhase && step == state_.round.clock());
  std::size_t const samples = state_.round.all().samples;
  bool const rejected = !state_.round.all().rejection.empty(), updates = state_.round.is_of_step() && !rejected;
  announced_.require_keys(step);
  kernels::HostReads arrived(state_.stream);
  auto* const routed = batch_to_route(step + 1);
  if (routed != nullptr) router_.begin(*routed, arrived);
  if (state_.placement.any_moved) planner_.list_keys(step + 2, arrived);
  if (updates) gradients_.find(arrived);
  finder_.wait_find(step, arrived);
  if (updates) gradients_.check_found();
  if (state_.round.is_of_step()) residuals_.wait_begin_apply(rejected);
  std::deque<FlushedSums> flushed;
  std::vector<TableShard::TableStep> tables;
  for (std::uint32_t t = 0; updates && t < state_.tables.size(); ++t) {
    auto& table = tables.emplace_back(TableShard::TableStep{&state_.table(TableId{t}), {}, samples});
    gradients_.wait_append(TableId{t}, table.lists);
    leased_.append_owned(step, TableId{t}, table.lists);
    std::size_t const before = flushed.size();
    residuals_.wait_append(TableId{t}, table.lists, flushed);
    // Gradients that have waited are divided by the samples of this step or, if it has none, by those of the last step
    // that had.
    bool const have_waited = flushed.size() > before || state_.staleness > 0;
    if (samples == 0 && have_waited) table.samples = residuals_.samples();
  }
  kernels::HostReads applied(state_.stream);
  if (routed != nullptr) router_.wait_set_lists(*routed, applied);  // no rows are added before wait_add_owned()
  auto const bad_rows_there = TableShard::apply(state_.stream, tables, step);
  std::vector<std::uint32_t> bad_rows;
  applied.add<std::uint32_t>(bad_rows_there.view(), bad_rows);
  finder_.read_wrong(applied);
  values_.find_existing(step + 1, existing_, applied);
  moves_.find_leaving(step + 1, leaving_, applied);
  applied.wait();
  if (routed != nullptr) router_.wait_add_owned(*routed);
  GPUPS_ASSERT(bad_rows.empty() || bad_rows.size() == tables.size());
  finder_.check_found();
  TableShard::check_applied(state_.stream, tables, bad_rows);
  gradients_.end_step();
  if (state_.round.is_of_step()) residuals_.end_apply(rejected);
  announced_.end_step(step);
  if (!state_.placement.any_moved) planner_.begin(step + 1);
  late_fetches_.wait_continue();
}

void RoundExecutor::send_refresh_phase() {
  kernels::NvtxRange const range("round: out");
  Clock const next = state_.round.clock() + 1;
  GPUPS_ASSERT(state_.round.phase() == Round::Phase::kRefreshPhase && state_.round.applied() == state_.round.clock());
  auto const values = values_.wait_pack(next, std::exchange(existing_, {}));
  // After the values: the rows become replicas of this rank.
  auto const moves = moves_.pack(next, std::exchange(leaving_, {}));
  if (state_.staleness > 0) leased_.pin_leaving(next);
  for (Rank const peer : state_.others()) {
    RefreshPhase message{.clock = state_.round.clock()};
    auto const read = values.find(peer);
    auto const moved = moves.find(peer);
    if (read != values.end()) message.parts = read->second.parts, message.sent = read->second.sent;
    if (moved != moves.end()) message.moved_sent = moved->second.sent;
    state_.messenger.send(peer, message);
    if (read != values.end()) values_.send(peer, next, read->second);
    if (moved != moves.end()) moves_.send(peer, next, moved->second);
  }
}

void RoundExecutor::wait_plan() {
  if (!planner_.expected()) return;
  kernels::NvtxRange const range("plan");
  Clock const step = *planner_.expected();
  GPUPS_ASSERT(step == state_.round.clock() + 1);
  for (auto& plan : planner_.wait_plan()) {
    if (plan.reader != state_.me) {
      announced_.take_planned(plan.reader, step, std::move(plan.own));
    } else if (plan.route) {
      GPUPS_ASSERT(state_.batches.at(step).sent && !state_.batches.at(step).routed);
      state_.batches.at(step).routes[state_.me] = std::move(*plan.route);
    }
  }
  late_fetches_.wait_continue();
}

void RoundExecutor::receive_refresh_phase(Rank from, RefreshPhase const& message) {
  auto const found = state_.batches.find(state_.round.clock() + 1);
  bool const in_time = found != state_.batches.end() && found->second.routed && !found->second.is_late;
  bool const reads = in_time && has_list(*found->second.batch, &PreparedPart::reads, from);
  bool const gets_rows = in_time && has_list(*found->second.batch, &PreparedPart::arriving, from);
  if (reads != (message.parts > 0) || gets_rows == message.moved_sent.empty()) {
    state_.throw_peer_error(from, "sent values for other rows than were announced");
  }
  auto const taken = countdown_callback(2, [this, from] { state_.round.on_data_received(from); });
  if (reads) {
    auto const values = tag(Section::kValues, state_.step() + 1, 0);
    values_.receive(from, found->second, values, std::nullopt, message.sent, taken);
  } else {
    taken();
  }
  if (gets_rows) {
    moves_.receive(from, found->second, message.moved_sent, taken);
  } else {
    taken();
  }
}

// Its order:
//   1. The batch of the step ends. Gradients of leased uses are kept, which reads its sums, and then the sums are
//   freed.
//   2. The next batch gets its rows: numbers for replicas and for rows that arrive, then their values and columns.
//   3. Replicas beyond the budget are dropped. Those of the next batch are marked as used by 2.
//   4. The home expects the plan of the step after the next one, which another thread may begin from now on.
//   5. on_complete(): the state is one between steps, and other threads and requests may look at all rows.
//   6. Late fetches, batches that have become readable, and the next round, which may change rows.
void RoundExecutor::complete() {
  Clock const step = state_.round.clock() - 1;
  GPUPS_ASSERT(state_.round.phase() == Round::Phase::kTraining && state_.round.applied() == step);
  // begin_round() has waited for late values: no callback refers to the batch that is erased.
  GPUPS_ASSERT(!state_.batches.contains(step) || state_.batches.at(step).fetches == 0);
  GPUPS_ASSERT(state_.batches.empty() || state_.batches.begin()->first >= step);  // each step erases its batch
  state_.batches.erase(step);
  // Keeps the gradients of leased uses, and frees the sums of the whole batch. `current` has the announced sums.
  leased_.wait_end_step(step, !state_.round.all().rejection.empty());
  if (state_.current != nullptr) {
    for (auto& part : state_.current->parts) part.end_step();
  }
  state_.current = nullptr;
  auto const next = state_.batches.find(state_.round.clock());
  if (next != state_.batches.end() && next->second.routed && !next->second.is_late) {
    kernels::HostReads arrived(state_.stream);
    MoveExchange::MarkedLists moved;
    moves_.find_arrived(next->second, moved, arrived);
    values_.wait_decode(next->second, arrived);
    moves_.write(next->second, moved);  // after wait_decode(), which numbers the rows, and waits for the reads of both
    GPUPS_ASSERT(has_rows(next->second));
  }
  // The replicas of the next batch are marked as used by it, so that they are not dropped. A late batch places its own
  // when its values arrive.
  GPUPS_ASSERT(next == state_.batches.end() || next->second.placed || next->second.is_late);
  TableShard::wait_limit_replicas(state_.stream, state_.tables, step);
  if (state_.placement.any_moved) planner_.expect(state_.round.clock() + 1);
  GPUPS_ASSERT(state_.current == nullptr && state_.round.clock() == step + 1);
  on_complete(step, state_.round.all());
  late_fetches_.wait_continue();  // may begin the next round
  check_ready(state_.round.clock());
  begin_round();
}

}  // namespace gpups::cache
