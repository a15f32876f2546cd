// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/het/het_cache.hpp"

#include <fmt/core.h>

#include <string>

#include "gpups/error.hpp"
#include "kernels/base/check.hpp"

namespace gpups::cache {

char const* name_of(Eviction eviction) {
  switch (eviction) {
    case Eviction::kLru:
      return "lru";
    case Eviction::kLfu:
      return "lfu";
    case Eviction::kTinyLfu:
      return "tinylfu";
  }
  return "unknown";
}

Eviction eviction_of(std::string_view name) {
  std::string names;
  for (auto const eviction : kEvictions) {
    if (name == name_of(eviction)) return eviction;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(eviction));
  }
  throw Error(fmt::format("there is no cache '{}' (the caches are {}): use one of them", name, names));
}

HetCache::HetCache(Eviction eviction, std::size_t lines_max) : eviction_(eviction), lines_max_(lines_max) {
  GPUPS_ASSERT(lines_max > 0);
  if (eviction == Eviction::kTinyLfu) sketch_.emplace(lines_max);
}

HetCache::Line* HetCache::find(Key key) {
  auto const found = lines_.find(key);
  return found == lines_.end() ? nullptr : &*found->second;
}

HetCache::Line* HetCache::use(Key key) {
  if (sketch_) sketch_->add(key);
  auto const found = lines_.find(key);
  if (found == lines_.end()) return nullptr;
  auto const line = found->second;
  auto const from = by_uses_.find(line->uses);
  if (eviction_ == Eviction::kLfu) ++line->uses;
  auto& to = by_uses_[line->uses];
  to.splice(to.end(), from->second, line);
  if (from->second.empty()) by_uses_.erase(from);
  return &*line;
}

std::optional<HetCache::Line> HetCache::insert(Key key, std::uint64_t version) {
  GPUPS_ASSERT(!lines_.contains(key));
  std::optional<Line> evicted;
  if (lines_.size() == lines_max_) {
    auto const first = by_uses_.begin();
    Key const victim = first->second.front().key;
    if (sketch_ && sketch_->estimate(key) <= sketch_->estimate(victim)) return std::nullopt;
    evicted = first->second.front();
    lines_.erase(victim);
    first->second.pop_front();
    if (first->second.empty()) by_uses_.erase(first);
  }
  std::uint64_t const uses = eviction_ == Eviction::kLfu ? 1 : 0;
  auto& to = by_uses_[uses];
  to.push_back({.key = key, .version = version, .updates = 0, .uses = uses});
  lines_[key] = std::prev(to.end());
  return evicted;
}

std::vector<HetCache::Line> HetCache::lines() const {
  std::vector<Line> all;
  for (auto const& [uses, lines] : by_uses_) all.insert(all.end(), lines.begin(), lines.end());
  return all;
}

}  // namespace gpups::cache
