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

// Drops the replicas that no step has used for ages[t] steps. counts: how many these are.
void TableShard::wait_drop_replicas(Stream& stream, std::span<TableShard* const> tables,
                                    std::span<std::uint32_t const> ages, std::span<std::size_t const> counts,
                                    Clock step) {
  std::vector<kernels::TakeReplicas> takes;
  std::vector<Array<std::uint32_t>> taken;
  std::vector<kernels::KeyIndex::Erasure> erasures;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    auto& shard = *tables[t];
    auto const rows = static_cast<std::uint32_t>(shard.index_.ids_end());
    auto const& of_table = taken.emplace_back(stream.device(), rows);
    takes.push_back({shard.uses_.ref(), rows, kernels::replica_word(step), ages[t], of_table});
    erasures.push_back({&shard.index_, of_table.view().slice(0, counts[t]), true});
    shard.replicas_ -= counts[t];
  }
  Array<std::uint32_t> const counts_there(stream.device(), tables.size());
  kernels::take_replicas(stream, takes, counts_there);
  kernels::KeyIndex::wait_erase_ids(stream, erasures);
}

// Returns how many replicas there are of each age; see kernels::CountReplicas.
std::vector<std::uint32_t> TableShard::wait_replica_ages(Stream& stream, std::span<TableShard* const> tables,
                                                         Clock step) {
  std::vector<kernels::CountReplicas> counted;
  for (auto* const shard : tables) {
    auto const rows = static_cast<std::uint32_t>(shard->index_.ids_end());
    shard->uses_.reserve(stream, rows);
    counted.push_back({shard->uses_.ref(), rows, kernels::replica_word(step)});
  }
  Array<std::uint32_t> const counts(stream.device(), kernels::kReplicaAges * tables.size());
  memory::fill_bytes(stream, counts.data(), 0, counts.bytes());
  kernels::count_replicas(stream, counted, counts);
  return to_host(stream, counts.view());
}

// Looks at all row numbers, so it should be rare: a quarter of the budget is free afterwards, unless later steps use
// more. The replicas that have not been used for longest are dropped.
void TableShard::wait_limit_replicas(Stream& stream, std::span<std::unique_ptr<TableShard> const> tables, Clock step) {
  std::vector<TableShard*> over;
  bool any = false;
  for (auto const& table : tables) {
    std::size_t const budget = table->replica_budget();
    any = any || table->replicas_ > budget;
    // Tables are looked at together: all of those from which something would be dropped.
    if (table->replicas_ > budget / 4 * 3) over.push_back(table.get());
  }
  if (!any) return;
  auto const of_age = wait_replica_ages(stream, over, step);
  std::vector<TableShard*> dropping;
  std::vector<std::uint32_t> ages;
  std::vector<std::size_t> counts;
  for (std::size_t t = 0; t < over.size(); ++t) {
    std::size_t const most = over[t]->replica_budget() / 4 * 3;
    std::size_t age = kernels::kReplicaAges, count = 0;
    while (age > 0 && over[t]->replicas_ - count > most) count += of_age[kernels::kReplicaAges * t + --age];
    if (count == 0) continue;
    dropping.push_back(over[t]);
    ages.push_back(kernels::least_steps(age));
    counts.push_back(count);
  }
  if (!dropping.empty()) wait_drop_replicas(stream, dropping, ages, counts, step);
}

void TableShard::wait_drop_replicas(Stream& stream, Clock step) {
  if (replicas_ == 0) return;
  TableShard* const table = this;
  std::size_t count = 0;
  for (auto const of_age : wait_replica_ages(stream, {&table, 1}, step)) count += of_age;
  std::uint32_t const age = 0;
  wait_drop_replicas(stream, {&table, 1}, {&age, 1}, {&count, 1}, step);
}

}  // namespace gpups::cache
