// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/replica_leases.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace gpups::cache {

std::vector<std::uint32_t> ReplicaLeases::ids_of(View<Key const> keys) {
  std::vector<std::uint32_t> ids(keys.size());
  index_.wait_find_or_insert(host_, keys, {ids.data(), ids.size(), Device::host()});
  records_.resize(index_.ids_end());
  return ids;
}

// Begins a new lease, if there may be another one. The record may have one that has not ended.
ReplicaUse ReplicaLeases::refresh(std::uint32_t id, Clock step, std::size_t leases_max) {
  auto& record = records_[id];
  bool const is_known = record.refreshed >= Clock{0};
  if (record.leased) --leases_;
  bool const leased = leases_ < (is_known ? leases_max : leases_max / 4 * 3);
  leases_ += leased ? 1 : 0;
  record = {.refreshed = step,
            .leased_until = leased ? std::max(record.leased_until, step + staleness_) : record.leased_until,
            .occurrences = 0,
            .waiting_uses = 0,
            .leased = leased};
  ended_[step + staleness_ + 1].push_back(id);
  return leased ? ReplicaUse::kRefreshAndLease : ReplicaUse::kRefresh;
}

std::vector<ReplicaUse> ReplicaLeases::plan(View<Key const> keys, std::span<std::uint32_t> occurrences, Clock step,
                                            std::size_t leases_max, bool refresh_all) {
  auto const ids = ids_of(keys);
  std::vector<ReplicaUse> uses(keys.size(), ReplicaUse::kRefresh);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    auto& record = records_[ids[i]];
    bool const is_leased = record.leased && record.refreshed < step && step <= record.refreshed + staleness_;
    if (is_leased && !refresh_all) {
      uses[i] = ReplicaUse::kLeased;
      ++record.waiting_uses;
      record.occurrences += occurrences[i];
      auto const age = static_cast<std::uint64_t>(step - record.refreshed);
      counts_ = {counts_.reads + 1, counts_.age + age, std::max(counts_.age_max, age)};
    } else if (record.refreshed > step) {
      record.earlier_refresh = step;
    } else {
      occurrences[i] += record.occurrences;
      uses[i] = refresh(ids[i], step, leases_max);
    }
  }
  return uses;
}

// Plans a refresh, unless the batch of the step has one already. What waits since a later refresh stays due.
void ReplicaLeases::take(std::uint32_t id, Clock step, std::size_t leases_max, std::vector<DueRow>& due) {
  auto& record = records_[id];
  if (record.refreshed == step || record.earlier_refresh == step) return;
  DueRow row{.key = Key{*index_.keys().row(id)}};
  if (record.refreshed < step) {
    row.occurrences = record.occurrences;
    row.use = refresh(id, step, leases_max);
  } else {
    record.earlier_refresh = step;
  }
  due.push_back(row);
}

void ReplicaLeases::take_overdue(Clock step, std::size_t leases_max, std::vector<DueRow>& due) {
  std::vector<Key> keys;
  for (auto const& overdue : overdue_) keys.push_back(overdue.key);
  auto const ids = ids_of(View<Key const>(keys));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    records_[ids[i]].occurrences += overdue_[i].occurrences;
    take(ids[i], step, leases_max, due);
  }
  overdue_.clear();
}

std::vector<ReplicaLeases::DueRow> ReplicaLeases::take_due(Clock step, bool all, std::size_t leases_max) {
  std::vector<DueRow> due;
  while (!ended_.empty() && ended_.begin()->first <= step) {
    auto const [end, ids] = std::move(*ended_.begin());
    ended_.erase(ended_.begin());
    for (auto const id : ids) {
      auto& record = records_[id];
      if (record.refreshed < Clock{0} || record.refreshed + staleness_ + 1 != end) continue;  // renewed
      if (record.waiting_uses > 0) {
        take(id, step, leases_max, due);
      } else {
        if (record.leased) --leases_;
        record = {.leased_until = record.leased_until};
        unplanned_[end].push_back(id);
      }
    }
  }
  take_overdue(step, leases_max, due);
  for (std::uint32_t id = 0; all && id < records_.size(); ++id) {
    if (records_[id].waiting_uses > 0) take(id, step, leases_max, due);
  }
  return due;
}

void ReplicaLeases::record_applied(View<Key const> keys, std::span<std::uint32_t const> occurrences, Clock step) {
  std::vector<std::uint32_t> ids(keys.size());
  index_.find(host_, keys, {ids.data(), ids.size(), Device::host()});
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == kernels::kNoRow) continue;
    auto& record = records_[ids[i]];
    if (record.refreshed >= step || record.waiting_uses == 0) continue;  // the use is of an earlier lease
    --record.waiting_uses;
    record.occurrences -= std::min(record.occurrences, occurrences[i]);
  }
}

void ReplicaLeases::complete(Clock step) {
  std::vector<std::uint32_t> erased;
  for (; !unplanned_.empty() && unplanned_.begin()->first <= step + 1; unplanned_.erase(unplanned_.begin())) {
    for (auto const id : unplanned_.begin()->second) {
      if (records_[id].refreshed < Clock{0} && records_[id].leased_until <= step) erased.push_back(id);
    }
  }
  std::sort(erased.begin(), erased.end());
  erased.erase(std::unique(erased.begin(), erased.end()), erased.end());
  for (auto const id : erased) records_[id] = {};
  index_.wait_erase_ids(host_, View<std::uint32_t const>(erased));
}

std::vector<std::uint32_t> ReplicaLeases::leased_at(View<Key const> keys, Clock step) const {
  std::vector<std::uint32_t> ids(keys.size()), places;
  index_.find(host_, keys, {ids.data(), ids.size(), Device::host()});
  for (std::uint32_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == kernels::kNoRow) continue;
    auto const& record = records_[ids[i]];
    if (record.leased_until >= step) places.push_back(i);
  }
  return places;
}

void ReplicaLeases::retry(std::vector<Key> const& keys) {
  for (Key const key : keys) overdue_.push_back({key, 0});
}

void ReplicaLeases::clear() {
  for (std::uint32_t id = 0; id < records_.size(); ++id) {
    auto const& record = records_[id];
    if (record.waiting_uses > 0) overdue_.push_back({Key{*index_.keys().row(id)}, record.occurrences});
  }
  // Numbers of rows depend on when steps were complete, and the order decides which rows get leases.
  std::sort(overdue_.begin(), overdue_.end(), [](auto const& a, auto const& b) { return a.key < b.key; });
  index_ = kernels::KeyIndex(Device::host(), 0, kernels::Growth::kByMoving);
  records_.clear();
  ended_.clear();
  unplanned_.clear();
  leases_ = 0;
}

void ReplicaLeases::drop(std::vector<Key> const& keys) {
  std::set<Key> const dropped(keys.begin(), keys.end());
  std::erase_if(overdue_, [&](OverdueKey const& overdue) { return dropped.contains(overdue.key); });
}

}  // namespace gpups::cache
