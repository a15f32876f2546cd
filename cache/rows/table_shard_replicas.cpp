// SPDX-License-Identifier: Apache-2.0
// TableShard: replicas of rows that other ranks own.
#include <algorithm>

#include "cache/rows/table_shard.hpp"
#include "kernels/base/check.hpp"
#include "kernels/rows/copy_rows.hpp"
#include "kernels/rows/gather_elements.hpp"
#include "kernels/rows/replicas.hpp"

namespace gpups::cache {

void TableShard::wait_place_replicas(Stream& stream, std::span<ShardKeys const> tables, Clock clock,
                                     kernels::HostReads& also) {
  Array<std::uint32_t> const counts(stream.device(), tables.size());
  std::vector<std::uint32_t> missing;
  kernels::KeyIndex::find_missing(stream, searches_of(tables), counts);
  also.add<std::uint32_t>(counts.view(), missing);
  also.wait();

  std::vector<kernels::KeyIndex::Insertion> insertions;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    auto const& [shard, keys, ids, distinct] = tables[t];
    GPUPS_ASSERT(t == 0 || shard != tables[t - 1].shard);  // a table has one list
    insertions.push_back({&shard->index_, keys, ids, missing[t], shard->options_.name, distinct});
  }
  auto const added = kernels::KeyIndex::wait_insert(stream, insertions);
  std::vector<kernels::MarkReplicas> marks;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    auto& shard = *tables[t].shard;
    shard.step_replicas_ = std::max(shard.step_replicas_, tables[t].keys.size());
    shard.replicas_ += added[t].size();
    shard.wait_make_room(stream);
    shard.uses_.reserve(stream, shard.index_.ids_end());
    marks.push_back({.uses = shard.uses_.ref(), .ids = tables[t].ids, .word = kernels::replica_word(clock)});
  }
  kernels::mark_replicas(stream, marks);
}

void TableShard::pin_replicas(Stream& stream, std::span<Pin const> pins, Clock clock) {
  std::vector<kernels::MarkReplicas> marks;
  for (auto const& [shard, ids] : pins) {
    shard->uses_.reserve(stream, shard->index_.ids_end());
    marks.push_back({.uses = shard->uses_.ref(), .ids = ids, .word = kernels::replica_word(clock), .skip_owned = true});
  }
  kernels::mark_replicas(stream, marks);
}

void TableShard::read_uses(Stream& stream, std::span<UsesOfRows const> lists) {
  std::vector<kernels::GatherStored<std::uint32_t>> gathers;
  for (auto const& [shard, ids, words] : lists) {
    shard->uses_.reserve(stream, shard->index_.ids_end());
    gathers.push_back({shard->uses_.const_ref(), ids, words});
  }
  kernels::gather_stored(stream, gathers);
}

void TableShard::find(Stream& stream, std::span<ShardKeys const> parts) {
  kernels::KeyIndex::find(stream, searches_of(parts));
}

kernels::InitRows TableShard::init_values(View<std::uint32_t const> ids) {
  return {.ids = ids,
          .keys = {},
          .values = values_.ref(),
          .state = {},
          .dim = dim(),
          .state_columns = 0,
          .initializer = options_.initializer,
          .accumulators = 0,
          .initial_accumulator = 0,
          .seed = seed_,
          .key_of_id = index_.keys()};
}

void TableShard::set_replicas(Stream& stream, View<std::uint32_t const> ids, MatrixView<float const> values) {
  kernels::scatter(stream, {.from = values, .ids = ids, .rows = values_.ref(), .dim = dim()});
}

// -- the budget --

namespace {

constexpr std::size_t kStepsKept = 4;  // the memory that they need is never freed

std::size_t budget_of(double fraction, std::size_t rows, std::size_t step_rows) {
  if (fraction == 0) return 0;
  return std::max(static_cast<std::size_t>(fraction * static_cast<double>(rows)), kStepsKept * step_rows);
}

}  // namespace

std::size_t TableShard::replica_budget() const {
  return budget_of(replica_fraction_, std::max(expected_rows_, rows_owned()), step_replicas_);
}

std::size_t TableShard::pin_budget(std::size_t step_rows) const {
  return budget_of(replica_fraction_, expected_rows_, step_rows) / 2;
}

// Drops the replicas that no step has used for replica_age_ steps.
void TableShard::wait_drop_replicas(Stream& stream, std::span<TableShard* const> tables, Clock step) {
  std::vector<kernels::TakeReplicas> takes;
  std::vector<Array<std::uint32_t>> taken;
  for (auto* const shard : tables) {
    auto const rows = static_cast<std::uint32_t>(shard->index_.ids_end());
    shard->uses_.reserve(stream, rows);
    takes.push_back({.uses = shard->uses_.ref(),
                     .rows = rows,
                     .now = kernels::replica_word(step),
                     .age = shard->replica_age_,
                     .taken = taken.emplace_back(stream.device(), rows)});
  }
  Array<std::uint32_t> const counts(stream.device(), tables.size());
  kernels::take_replicas(stream, takes, counts);
  auto const count = to_host(stream, counts.view());
  std::vector<kernels::KeyIndex::Erasure> erasures;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    tables[t]->replicas_ -= count[t];
    erasures.push_back({&tables[t]->index_, taken[t].view().slice(0, count[t])});
  }
  kernels::KeyIndex::wait_erase_ids(stream, erasures);
}

// Looks at all row numbers, so it should be rare: at least a quarter of the budget is free afterwards. The age adapts
// to the budget: it is halved while too many replicas are left, and doubled if less than half of the budget is used.
void TableShard::wait_limit_replicas(Stream& stream, std::span<std::unique_ptr<TableShard> const> tables, Clock step) {
  std::vector<TableShard*> over;
  for (auto const& table : tables) {
    if (table->replicas_ > table->replica_budget()) over.push_back(table.get());
  }
  while (!over.empty()) {
    wait_drop_replicas(stream, over, step);
    std::erase_if(over, [](TableShard* table) {
      std::size_t const budget = table->replica_budget();
      if (table->replicas_ > budget / 4 * 3 && table->replica_age_ > 0) {
        table->replica_age_ /= 2;
        return false;
      }
      if (table->replicas_ < budget / 2) table->replica_age_ = 2 * table->replica_age_ + 1;
      return true;
    });
  }
}

void TableShard::wait_drop_replicas(Stream& stream, Clock step) {
  if (replicas_ == 0) return;
  TableShard* const table = this;
  replica_age_ = 0;
  wait_drop_replicas(stream, {&table, 1}, step);
}

}  // namespace gpups::cache
