// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/directory.hpp"

#include <algorithm>

namespace gpups::cache {

std::vector<Rank> Directory::owners(View<Key const> keys, Rank home, Clock step) const {
  std::vector<Rank> all(keys.size(), home);
  if (size() == 0 && before_.empty()) return all;
  std::vector<std::uint32_t> ids(keys.size());
  index_.find(host_, keys, View<std::uint32_t>(ids));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != kernels::kNoRow) all[i] = entries_[ids[i]].owner;
  }
  if (step >= planned_ || before_.empty()) return all;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto const moved = before_.find(keys[i]);
    if (moved != before_.end()) all[i] = moved->second ? moved->second->owner : home;
  }
  return all;
}

std::optional<Directory::Entry> Directory::find(Key key, Clock step) const {
  if (step < planned_) {
    auto const moved = before_.find(key);
    if (moved != before_.end()) return moved->second;
  }
  if (size() == 0) return std::nullopt;
  std::uint32_t id = kernels::kNoRow;
  index_.find(host_, View<Key const>(&key, 1, Device::host()), View<std::uint32_t>(&id, 1, Device::host()));
  if (id == kernels::kNoRow) return std::nullopt;
  return entries_[id];
}

void Directory::plan(View<Key const> keys, std::span<Rank const> owners, Rank home, Clock since,
                     PlacementReason reason) {
  before_.clear();
  planned_ = since;
  for (Key const key : keys) before_[key] = find(key, since);
  set(keys, owners, home, since, reason);
}

void Directory::set(View<Key const> keys, std::span<Rank const> owners, Rank home, Clock since,
                    PlacementReason reason) {
  std::vector<Key> away, back;
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (owners[i] == home) {
      back.push_back(keys[i]);
    } else {
      away.push_back(keys[i]);
      entries.push_back({owners[i], reason, since});
    }
  }
  index_.wait_erase(host_, View<Key const>(back));
  std::vector<std::uint32_t> ids(away.size());
  index_.wait_find_or_insert(host_, View<Key const>(away), View<std::uint32_t>(ids));
  entries_.resize(index_.ids_end());
  for (std::size_t i = 0; i < ids.size(); ++i) entries_[ids[i]] = entries[i];
}

std::vector<Directory::KeyedEntry> Directory::list(Clock step) const {
  std::vector<KeyedEntry> all;
  bool const is_planned = step >= planned_;
  if (size() > 0) {
    auto const keys = index_.keys();
    for (auto const id : to_host(host_, index_.wait_ids(host_).view())) {
      Key const key{*keys.row(id)};
      if (is_planned || !before_.contains(key)) all.push_back({key, entries_[id]});
    }
  }
  if (!is_planned) {
    for (auto const& [key, entry] : before_) {
      if (entry) all.push_back({key, *entry});
    }
  }
  std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.key < b.key; });
  return all;
}

}  // namespace gpups::cache
