// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/announced_uses.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/index/sort_keys.hpp"

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
      auto const& [reader, parts] = step.batches[b];
      for (std::size_t p = 0; p < parts.size(); ++p) {
        if (parts[p].table != TableId{t}) continue;
        auto const size = static_cast<std::uint32_t>(parts[p].keys.size());
        step.parts.push_back({b, p, uses, size});
        lists.push_back(parts[p].keys);
        ranks.push_back({size, number(reader)});
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

UsedRows AnnouncedUses::list_rows(Stream& stream, std::size_t tables, Clock step, std::int64_t steps) {
  auto const first = steps_.find(step);
  GPUPS_ASSERT(steps >= 1 && steps <= kernels::kPolicyWindow);
  GPUPS_ASSERT(first != steps_.end() && first->second.sorted && first->second.counts.size() == tables);
  std::vector<kernels::UseRun> window;
  UsedRows used{.tables = std::vector<kernels::UsedTable>(tables)};
  std::size_t all_uses = 0;
  auto const end = steps_.lower_bound(step + steps);
  for (auto run = first; run != end; ++run) {
    auto& uses = run->second;
    if (!uses.sorted) sort_uses(stream, tables, uses);
    for (std::size_t t = 0; t < tables; ++t) {
      used.tables[t].begin[window.size()] = uses.first_use[t];
      used.tables[t].end[window.size()] = uses.first_use[t + 1];
    }
    window.push_back({uses.keys, uses.ranks, static_cast<std::uint32_t>(run->first - step)});
    all_uses += uses.uses();
  }
  auto& now = first->second;
  for (std::size_t t = 0; t < tables; ++t) {
    used.tables[t].first = now.first_use[t];
    used.tables[t].size = now.counts[t];
  }
  used.keys = std::move(now.distinct);
  used.heads = std::move(now.heads);
  std::size_t const uses = now.uses();
  used.first_user = Array<std::uint32_t>(stream.device(), uses);
  used.user_count = Array<std::uint32_t>(stream.device(), uses);
  used.users = Array<kernels::RowUser>(stream.device(), all_uses);
  Array<std::uint32_t> const later(stream.device(), (window.size() - 1) * uses);
  kernels::list_users(stream, {.window = window,
                               .tables = used.tables,
                               .keys = used.keys,
                               .heads = used.heads,
                               .later = later,
                               .first_user = used.first_user,
                               .user_count = used.user_count,
                               .users = used.users});
  return used;
}

}  // namespace gpups::cache
