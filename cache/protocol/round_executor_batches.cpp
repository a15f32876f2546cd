// SPDX-License-Identifier: Apache-2.0
// RoundExecutor between rounds: announces batches, saves and loads residuals, and drops or moves rows.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "cache/protocol/round_executor.hpp"
#include "kernels/base/check.hpp"

namespace gpups::cache {

namespace {

// Returns the keys of a batch that have this home, by part, in the memory of its pattern.
std::vector<ListKeys> keys_of_home(PreparedBatch::Impl const& batch, Rank home) {
  std::shared_ptr<Array<Key> const> const memory(batch.pattern, &batch.pattern->keys);
  std::vector<ListKeys> keys;
  for (auto const& part : batch.parts) keys.push_back({part.table, part.keys_at(home), memory});
  return keys;
}

}  // namespace

// -- batches --

void RoundExecutor::set_policy(PlacementRules const& rules, std::int64_t staleness) {
  GPUPS_ASSERT(state_.batches.empty());
  if (state_.ranks == 1) return;
  state_.staleness = staleness;
  if (staleness > 0) leased_.start();
  bool const any_moves = std::any_of(state_.tables.begin(), state_.tables.end(), [&](auto const& table) {
    return rules.policy_of(table->options()) != PlacementPolicy::kStatic;
  });
  if (!any_moves) return;
  GPUPS_REQUIRE(static_cast<std::uint32_t>(state_.ranks) <= kernels::kMovingRanksMax,
                "rows of {} ranks cannot move (at most {}): use placement policy 'static'", state_.ranks,
                kernels::kMovingRanksMax);
  state_.rules = rules;
  state_.hosts = to_device(state_.stream, rules.hosts);
  first_ = state_.round.clock();
  planner_.set_window(rules.window);
  state_.placement.any_moved = true;
}

void RoundExecutor::announce_first() {
  if (!state_.rows_move() || state_.staleness > 0 || state_.round.clock() == Clock{0}) return;
  state_.round.announce_first();
  first_ = state_.round.clock() - 1;
}

void RoundExecutor::announce(BatchPtr const& whole) {
  if (state_.staleness == 0) return announce_rows(whole, 0);
  std::int64_t unannounced = 0;
  auto const announced = leased_.wait_divide(whole, unannounced);
  announce_rows(announced, unannounced);
}

void RoundExecutor::announce_rows(BatchPtr const& batch, std::int64_t unannounced) {
  GPUPS_ASSERT(batch->clock >= state_.round.clock());
  auto& placement = state_.placement;
  for (auto& part : batch->parts) {
    part.ids = Array<std::uint32_t>(state_.stream.device(), part.rows);
    auto const memory =
        std::make_shared<Array<std::uint32_t>>(state_.stream.device(), part.rows - part.rows_at(state_.me));
    static_cast<PositionList&>(part.reads) = {memory->view(), memory};
    part.reads.first.assign(1, 0);
    for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(state_.ranks); ++q) {
      auto const rows = Rank{q} == state_.me ? 0 : part.rows_at(Rank{q});
      part.reads.first.push_back(part.reads.first.back() + static_cast<std::uint32_t>(rows));
    }
  }
  auto [place, added] = state_.batches.emplace(batch->clock, PendingBatch{.batch = batch, .unannounced = unannounced});
  GPUPS_ASSERT(added);
  auto& pending = place->second;
  if (placement.any_moved) {
    wait_announce_moving(pending);
  } else {
    router_.wait_route(pending);
    bool const is_remote =
        std::any_of(batch->parts.begin(), batch->parts.end(), [](auto const& part) { return part.reads.size() > 0; });
    bool const in_time = batch->clock > state_.round.next_in();
    if (in_time) own_intents_.emplace_back(batch->clock, keys_of_home(*batch, state_.me));
    if (!is_remote) {
      pending.sent = true;
    } else if (!in_time) {
      late_fetches_.wait_fetch(pending, {});
    } else {
      intents_.wait_queue(*batch);
    }
  }
  check_ready(batch->clock);
}

// Announces a batch whose rows may be away from their homes: the plan of its step routes it.
void RoundExecutor::wait_announce_moving(PendingBatch& pending) {
  auto& batch = *pending.batch;
  auto own = intents_.own_keys(batch);
  if (batch.clock <= state_.round.next_in() + 1) {
    if (state_.rows_move() && batch.clock > first_ + 1) ++late_batches_;
    return late_fetches_.wait_fetch(pending, wait_download_keys(state_.stream, own));
  }
  intents_.wait_queue(batch);
  own_intents_.emplace_back(batch.clock, std::move(own));
}

void RoundExecutor::check_ready(Clock clock) {
  auto const found = state_.batches.find(clock);
  if (found == state_.batches.end() || found->second.fetches > 0) return;
  if (state_.round.clock() != clock || state_.round.phase() != Round::Phase::kTraining) return;
  GPUPS_ASSERT(has_rows(found->second));
  auto& batch = state_.staleness == 0 ? *found->second.batch : leased_.join_rows(clock);
  if (batch.ready) return;
  batch.ready_event = state_.stream.record();
  batch.ready = true;
  begin_round();  // its step may have ended already
}

std::vector<RankedRow> RoundExecutor::wait_hottest_rows(std::size_t most) {
  wait_plan();
  return planner_.wait_hottest_rows(most);
}

// -- rows that are saved, erased or moved --

void RoundExecutor::wait_drop(TableId table, View<Key const> keys) {
  wait_drop_residuals(table, keys);
  values_.wait_drop(table, keys);
}

std::vector<Key> RoundExecutor::wait_residual_keys(TableId table) {
  auto keys = residuals_.wait_keys(table);
  auto const waiting = leased_.wait_keys(table);
  keys.insert(keys.end(), waiting.begin(), waiting.end());
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

void RoundExecutor::wait_drop_residuals(TableId table, View<Key const> keys) {
  residuals_.wait_drop(table, keys);
  leased_.wait_drop(table, keys);
}

ResidualFile RoundExecutor::wait_save_residuals() {
  ResidualFile file;
  residuals_.wait_save(file);
  leased_.wait_save(file);
  values_.wait_save(file);
  return file;
}

void RoundExecutor::wait_load_residuals(ResidualFile const& file) {
  residuals_.wait_load(file);
  if (file.writers == static_cast<std::uint32_t>(state_.ranks)) values_.wait_load(file);
}

}  // namespace gpups::cache
