// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/owner_directory.hpp"

#include <algorithm>
#include <unordered_set>

namespace gpups::cache {

// Returns the numbers of the entries of keys, or kNoRow.
std::vector<std::uint32_t> OwnerDirectory::find(View<Key const> keys) const {
  std::vector<std::uint32_t> ids(keys.size(), kernels::kNoRow);
  if (size() > 0) index_.find(host_, keys, View<std::uint32_t>(ids));
  return ids;
}

std::vector<Rank> OwnerDirectory::owners(std::span<std::uint32_t const> ids, Rank home, Clock step) const {
  std::vector<Rank> all(ids.size(), home);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == kernels::kNoRow) continue;
    auto const& stored = entries_[ids[i]];
    all[i] = moves_after(step, stored) ? stored.before : stored.entry.owner;
  }
  return all;
}

std::vector<Rank> OwnerDirectory::owners(View<Key const> keys, Rank home, Clock step) const {
  return owners(find(keys), home, step);
}

RowOwners OwnerDirectory::owners_around(View<Key const> keys, Rank home, Clock step) const {
  auto const ids = find(keys);
  return {.before = owners(ids, home, step - 1), .in_step = owners(ids, home, step)};
}

std::optional<OwnerDirectory::Entry> OwnerDirectory::find(Key key, Clock step) const {
  auto const id = find(View<Key const>(&key, 1, Device::host()))[0];
  if (id == kernels::kNoRow) return std::nullopt;
  auto const& stored = entries_[id];
  if (!moves_after(step, stored)) {
    bool const has_returned = std::find(returned_.begin(), returned_.end(), key) != returned_.end();
    return has_returned ? std::nullopt : std::optional(stored.entry);
  }
  return std::find_if(before_.begin(), before_.end(), [=](auto const& one) { return one.first == key; })->second;
}

std::vector<std::uint32_t> OwnerDirectory::insert(View<Key const> keys) {
  std::vector<std::uint32_t> ids(keys.size());
  index_.wait_find_or_insert(host_, keys, View<std::uint32_t>(ids));
  entries_.resize(index_.ids_end());
  return ids;
}

// Ends the planned step: rows that returned to their home are not away any more.
void OwnerDirectory::erase_returned() {
  index_.wait_erase(host_, View<Key const>(returned_));
  returned_.clear();
  before_.clear();
}

void OwnerDirectory::set(View<Key const> keys, std::span<Rank const> owners, Rank home, Clock since,
                         PlacementReason reason) {
  erase_returned();
  std::vector<Key> away, back;
  std::vector<Rank> to;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (owners[i] != home) to.push_back(owners[i]);
    (owners[i] == home ? back : away).push_back(keys[i]);
  }
  index_.wait_erase(host_, View<Key const>(back));
  auto const ids = insert(View<Key const>(away));
  for (std::size_t i = 0; i < ids.size(); ++i) entries_[ids[i]] = {{to[i], reason, since}, to[i]};
}

void OwnerDirectory::plan(View<Key const> keys, std::span<Rank const> owners, Rank home, Clock since,
                          PlacementReason reason) {
  erase_returned();
  planned_ = since;
  auto ids = find(keys);
  std::vector<std::optional<Entry>> before(keys.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != kernels::kNoRow) before[i] = entries_[ids[i]].entry;
  }
  ids = insert(keys);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    before_.emplace_back(keys[i], before[i]);
    entries_[ids[i]] = {{owners[i], reason, since}, before[i] ? before[i]->owner : home};
    if (owners[i] == home) returned_.push_back(keys[i]);
  }
}

std::vector<OwnerDirectory::KeyedEntry> OwnerDirectory::list(Clock step) const {
  std::vector<KeyedEntry> all;
  if (size() == 0) return all;
  std::unordered_set<Key> const returned(returned_.begin(), returned_.end());
  auto const keys = index_.keys();
  for (auto const id : to_host(host_, index_.wait_ids(host_).view())) {
    Key const key{*keys.row(id)};
    if (!moves_after(step, entries_[id]) && !returned.contains(key)) all.push_back({key, entries_[id].entry});
  }
  for (auto const& [key, entry] : before_) {
    if (step < planned_ && entry) all.push_back({key, *entry});
  }
  std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.key < b.key; });
  return all;
}

}  // namespace gpups::cache
