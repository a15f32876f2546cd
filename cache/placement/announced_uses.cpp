// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/announced_uses.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/index/sort_keys.hpp"
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

void AnnouncedUses::list_keys(Stream& stream, std::size_t tables, Clock step, kernels::HostReads& reads,
                              bool with_users) {
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
  if (with_users) {
    extend_window(stream, tables, step, reads);
  } else {
    window_.reset();
  }
}

// Takes in the uses of the window's steps that are new: those of one step, if all ranks announce as far ahead.
void AnnouncedUses::extend_window(Stream& stream, std::size_t tables, Clock step, kernels::HostReads& reads) {
  if (!window_) {
    window_.emplace(UserWindow{.step = step, .first = std::vector<std::uint32_t>(tables)});
    window_->counts.resize(tables);
    window_->counts_there = Array<std::uint32_t>(stream.device(), tables);
    memory::fill_bytes(stream, window_->counts_there.data(), 0, window_->counts_there.bytes());
  }
  std::uint32_t kept = window_->steps_from(step);
  window_->step = step;
  auto const end = steps_.lower_bound(step + kernels::kPolicyWindow);
  for (auto run = steps_.lower_bound(step); run != end; ++run) {
    auto& uses = run->second;
    StepUses added;
    for (auto& batch : uses.batches) {
      if (!std::exchange(batch.in_window, true)) added.batches.push_back(batch);
    }
    if (added.batches.empty()) continue;
    bool const are_all = added.batches.size() == uses.batches.size();
    auto& merged = are_all ? uses : added;
    if (!merged.sorted) sort_uses(stream, tables, merged);
    merge(stream, merged, run->first, kept);
    kept = ~0U;
  }
  reads.add<std::uint32_t>(window_->counts_there.view(), window_->counts);
}

// kept: bits of the steps that stay in the window.
void AnnouncedUses::merge(Stream& stream, StepUses const& uses, Clock step, std::uint32_t kept) {
  std::size_t const tables = window_->counts.size();
  std::vector<kernels::MergeUses::MergedTable> merged;
  UserWindow next{.step = window_->step};
  std::uint32_t users = 0, blocks = 0;
  for (std::size_t t = 0; t < tables; ++t) {
    std::uint32_t const first_use = uses.first_use[t], of_table = uses.first_use[t + 1] - first_use;
    merged.push_back({window_->first[t], window_->counts[t], first_use, of_table, users, blocks});
    next.first.push_back(users);
    next.counts.push_back(window_->counts[t] + of_table);
    users += next.counts.back();
    blocks += kernels::merged_blocks(stream.device(), next.counts.back());
  }
  next.keys = Array<Key>(stream.device(), users);
  next.users = Array<kernels::RowUser>(stream.device(), users);
  next.counts_there = Array<std::uint32_t>(stream.device(), tables);
  Array<std::uint32_t> const counts(stream.device(), blocks), block_at(stream.device(), blocks + 1);
  kernels::MergeUses const merge{.tables = merged,
                                 .before = window_->columns(),
                                 .kept = kept,
                                 .run = {uses.keys, uses.ranks},
                                 .bit = kernels::window_bit(step)};
  kernels::count_merged_uses(stream, {merge, counts});
  kernels::running_sums(stream, {counts, block_at});
  kernels::write_merged_uses(stream, {merge, block_at, next.keys, next.users, next.counts_there});
  window_ = std::move(next);
}

UsedRows AnnouncedUses::list_rows(Stream& stream, Clock step) {
  auto& now = steps_.at(step);
  std::size_t const tables = now.counts.size(), uses = now.uses();
  GPUPS_ASSERT(now.sorted && now.distinct.size() == uses);
  UsedRows used;
  for (std::size_t t = 0; t < tables; ++t) {
    std::uint32_t const first = now.first_use[t];
    used.tables.push_back({first, now.counts[t], first, now.first_use[t + 1] - first});
  }
  used.keys = std::move(now.distinct);
  used.heads = std::move(now.heads);
  used.first_user = Array<std::uint32_t>(stream.device(), uses);
  used.user_count = Array<std::uint32_t>(stream.device(), uses);
  if (!window_) {
    memory::fill_bytes(stream, used.user_count.data(), 0, used.user_count.bytes());
    return used;
  }
  GPUPS_ASSERT(window_->step == step);
  used.users = Array<kernels::RowUser>(stream.device(), window_->users.size());
  std::vector<kernels::ListUsers::WindowTable> searched;
  for (std::size_t t = 0; t < tables; ++t) searched.push_back({used.tables[t], window_->first[t]});
  kernels::list_users(stream, {.tables = searched,
                               .window = window_->columns(),
                               .step = step,
                               .valid = window_->steps_from(step),
                               .keys = used.keys,
                               .first_user = used.first_user,
                               .user_count = used.user_count,
                               .users = used.users});
  return used;
}

}  // namespace gpups::cache
