// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/announced_uses.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "gpups/error.hpp"
#include "kernels/base/check.hpp"
#include "kernels/index/sort_keys.hpp"
#include "kernels/placement/partition.hpp"
#include "kernels/placement/settle_leases.hpp"

namespace gpups::cache {
namespace {

// Sorts the uses of a step. Queued on the stream.
void sort_uses(Stream& stream, std::size_t tables, StepUses& step) {
  step.parts.clear();
  step.first_use.assign(1, 0);
  std::vector<View<Key const>> lists;
  std::vector<kernels::RankUses::UsesOfRank> ranks;
  std::uint32_t uses = 0;
  for (std::uint32_t t = 0; t < tables; ++t) {
    for (std::size_t b = 0; b < step.batches.size(); ++b) {
      auto const& parts = step.batches[b].parts;
      for (std::size_t p = 0; p < parts.size(); ++p) {
        if (parts[p].table != TableId{t}) continue;
        auto const size = static_cast<std::uint32_t>(parts[p].keys.size());
        step.parts.push_back({b, p, uses, size});
        lists.push_back(parts[p].keys);
        ranks.push_back({size, number(step.batches[b].reader)});
        uses += size;
      }
    }
    step.first_use.push_back(uses);
  }
  step.unsorted = Array<Key>(stream.device(), uses);
  step.keys = Array<Key>(stream.device(), uses);
  step.positions = Array<std::uint32_t>(stream.device(), uses);
  step.ranks = Array<std::uint16_t>(stream.device(), uses);
  kernels::concatenate_keys(stream, lists, step.unsorted);
  std::vector<kernels::SortedKeys> sorts;
  for (std::size_t t = 0; t < tables; ++t) {
    std::uint32_t const first = step.first_use[t], size = step.first_use[t + 1] - first;
    sorts.push_back({step.unsorted.view().slice(first, size), step.keys.view().slice(first, size),
                     step.positions.view().slice(first, size), first});
  }
  kernels::sort_keys(stream, sorts);
  kernels::rank_uses(stream, {ranks, step.positions, step.ranks});
  step.sorted = true;
}

}  // namespace

void AnnouncedUses::add(Clock step, AnnouncedBatch batch) {
  auto& uses = steps_[step];
  auto const later = std::upper_bound(uses.batches.begin(), uses.batches.end(), batch.reader,
                                      [](Rank reader, AnnouncedBatch const& other) { return reader < other.reader; });
  uses.batches.insert(later, std::move(batch));
  uses.sorted = false;
}

StepUses const* AnnouncedUses::at(Clock step) const {
  auto const found = steps_.find(step);
  return found == steps_.end() ? nullptr : &found->second;
}

std::size_t AnnouncedUses::steps(Clock first, Clock end) const {
  return static_cast<std::size_t>(std::distance(steps_.lower_bound(first), steps_.lower_bound(end)));
}

std::vector<AnnouncedBatch> AnnouncedUses::drop(Clock step) {
  auto dropped = steps_.extract(step);
  return dropped.empty() ? std::vector<AnnouncedBatch>{} : std::move(dropped.mapped().batches);
}

void AnnouncedUses::list_keys(Stream& stream, std::size_t tables, Clock step, kernels::HostReads& reads) {
  auto const found = steps_.find(step);
  if (found == steps_.end()) return;
  auto& uses = found->second;
  if (!uses.sorted) sort_uses(stream, tables, uses);
  uses.distinct = Array<Key>(stream.device(), uses.uses());
  uses.heads = Array<std::uint32_t>(stream.device(), uses.uses());
  uses.counts_there = Array<std::uint32_t>(stream.device(), tables);
  std::vector<kernels::ListUsedKeys::RunOfTable> runs;
  for (std::size_t t = 0; t < tables; ++t) {
    runs.push_back({uses.first_use[t], uses.first_use[t + 1] - uses.first_use[t]});
  }
  kernels::list_used_keys(stream, {runs, uses.keys, uses.distinct, uses.heads, uses.counts_there});
  reads.add<std::uint32_t>(uses.counts_there.view(), uses.counts);
}

// Merges the batches of the window's steps that are new.
void AnnouncedUses::extend_window(Stream& stream, std::size_t tables, Clock step) {
  if (!window_) {
    window_.emplace(UserWindow{.step = step});
    window_->first_user.resize(tables);
    window_->users_max.resize(tables);
    window_->counts = Array<std::uint32_t>(stream.device(), tables);
    memory::fill_bytes(stream, window_->counts.data(), 0, window_->counts.bytes());
  }
  GPUPS_ASSERT(step >= window_->step);
  auto kept = window_->steps_from(step);
  auto const is_new = [](AnnouncedBatch const& batch) { return !batch.in_window; };
  auto const end = steps_.lower_bound(step + window_steps_);
  for (auto run = steps_.lower_bound(step); run != end; ++run) {
    auto& batches = run->second.batches;
    auto const added = std::count_if(batches.begin(), batches.end(), is_new);
    if (added == 0) continue;
    StepUses some;
    bool const are_all = static_cast<std::size_t>(added) == batches.size();
    if (!are_all) std::copy_if(batches.begin(), batches.end(), std::back_inserter(some.batches), is_new);
    auto& uses = are_all ? run->second : some;
    if (!uses.sorted) sort_uses(stream, tables, uses);
    merge(stream, uses, run->first, std::exchange(kept, ~0U));
    for (auto& batch : batches) batch.in_window = true;
  }
  if (kept == ~0U) window_->step = step;  // otherwise it still has the bits of earlier steps
}

// kept: bits of the steps that stay in the window.
void AnnouncedUses::merge(Stream& stream, StepUses const& uses, Clock step, std::uint32_t kept) {
  Device const device = stream.device();
  std::size_t const tables = window_->users_max.size();
  std::uint64_t most = uses.uses();
  for (auto const of_table : window_->users_max) most += of_table;
  GPUPS_REQUIRE(most < kernels::kNoList,
                "{} uses of rows are announced to a rank for the next {} steps (a plan numbers them in 32 bits): use "
                "smaller batches or more ranks, or placement policy 'static'",
                most, window_steps_);
  std::vector<kernels::MergeUses::MergedTable> merged;
  UserWindow next{.step = window_->step};
  std::uint32_t users = 0, blocks = 0;
  bool counts_blocks = false;
  for (std::size_t t = 0; t < tables; ++t) {
    std::uint32_t const first_use = uses.first_use[t], of_table = uses.first_use[t + 1] - first_use;
    std::uint32_t const before = window_->users_max[t];
    merged.push_back({.first_user = window_->first_user[t],
                      .users_max = before,
                      .first_use = first_use,
                      .uses = of_table,
                      .to = users,
                      .first_block = blocks,
                      .blocks = kernels::merged_blocks(device, before + of_table)});
    next.first_user.push_back(users);
    next.users_max.push_back(before + of_table);
    users += before + of_table;
    blocks += merged.back().blocks;
    counts_blocks = counts_blocks || merged.back().blocks > 1;
  }
  next.keys = Array<Key>(device, users);
  next.users = Array<kernels::WindowUser>(device, users);
  next.counts = Array<std::uint32_t>(device, tables);
  Array<std::uint32_t> const counts(device, blocks), block_at(device, blocks + 1);
  kernels::MergeUses const merge{.tables = merged,
                                 .before = window_->columns(),
                                 .kept = kept,
                                 .run = {uses.keys, uses.ranks},
                                 .bit = kernels::step_ring_bit(step)};
  if (counts_blocks) {
    kernels::count_merged_uses(stream, {merge, counts});
    kernels::running_sums(stream, {counts, block_at});
  }
  kernels::write_merged_uses(stream, {merge, block_at, next.keys, next.users, next.counts});
  window_ = std::move(next);
}

UsedRows AnnouncedUses::list_rows(Clock step) {
  auto& now = steps_.at(step);
  GPUPS_ASSERT(now.sorted && now.distinct.size() == now.uses());
  UsedRows used;
  for (std::size_t t = 0; t < now.counts.size(); ++t) {
    std::uint32_t const first = now.first_use[t];
    used.tables.push_back({first, now.counts[t], first, now.first_use[t + 1] - first});
  }
  used.keys = std::move(now.distinct);
  used.heads = std::move(now.heads);
  return used;
}

UsedRows AnnouncedUses::list_rows_with_users(Stream& stream, Clock step, kernels::HostReads& reads) {
  auto used = list_rows(step);
  extend_window(stream, used.tables.size(), step);
  used.first_user = Array<std::uint32_t>(stream.device(), used.keys.size());
  used.user_count = Array<std::uint32_t>(stream.device(), used.keys.size());
  used.users = Array<kernels::RowUser>(stream.device(), window_->users.size());
  std::vector<kernels::ListUsers::WindowTable> searched;
  for (std::size_t t = 0; t < used.tables.size(); ++t) searched.push_back({used.tables[t], window_->first_user[t]});
  kernels::list_users(stream, {.tables = searched,
                               .window = window_->columns(),
                               .step = step,
                               .valid = window_->steps_from(step),
                               .keys = used.keys,
                               .first_user = used.first_user,
                               .user_count = used.user_count,
                               .users = used.users});
  reads.add<std::uint32_t>(window_->counts.view(), window_->users_max);
  return used;
}

}  // namespace gpups::cache
