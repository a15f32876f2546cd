// SPDX-License-Identifier: Apache-2.0
// The rows that a worker's cache of HET has, as a list of rows that every call searches.
#pragma once

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "cache/placement/het/het_cache.hpp"

namespace gpups::test {

class NaiveCache {
 public:
  NaiveCache(cache::Eviction eviction, std::size_t lines_max)
      : eviction_(eviction), lines_max_(lines_max), sketch_(lines_max) {}

  bool has(Key key) const { return std::ranges::find(rows_, key, &Row::key) != rows_.end(); }

  // Counts a use. Returns whether the cache has the row.
  bool use(Key key) {
    sketch_.add(key);
    auto const row = std::ranges::find(rows_, key, &Row::key);
    if (row == rows_.end()) return false;
    ++row->uses;
    row->last_use = ++time_;
    return true;
  }

  // Inserts a row, if it is admitted. Returns the row that is evicted for it.
  std::optional<Key> insert(Key key) {
    std::optional<Key> evicted;
    if (rows_.size() == lines_max_) {
      Key const victim = in_order().front();
      bool const admits = eviction_ != cache::Eviction::kTinyLfu || sketch_.estimate(key) > sketch_.estimate(victim);
      if (!admits) return std::nullopt;
      std::erase_if(rows_, [&](Row const& row) { return row.key == victim; });
      evicted = victim;
    }
    rows_.push_back({key, 1, ++time_});
    return evicted;
  }

  // Returns the rows in the order in which they would be evicted.
  std::vector<Key> in_order() const {
    auto sorted = rows_;
    std::ranges::sort(sorted, {}, [&](Row const& row) {
      return std::tuple(eviction_ == cache::Eviction::kLfu ? row.uses : 0, row.last_use);
    });
    std::vector<Key> keys;
    for (auto const& row : sorted) keys.push_back(row.key);
    return keys;
  }

 private:
  struct Row {
    Key key{};
    int uses = 0;
    int last_use = 0;
  };
  cache::Eviction eviction_;
  std::size_t lines_max_;
  cache::FrequencySketch sketch_;
  std::vector<Row> rows_;
  int time_ = 0;
};

}  // namespace gpups::test
