// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/key_uses.hpp"

namespace gpups::cache {

void KeyUses::add(View<Key const> keys, RowUse use) {
  std::vector<std::uint32_t> ids(keys.size());
  index_.wait_find_or_insert(host_, keys, View<std::uint32_t>(ids));
  last_.resize(index_.ids_end(), kEnd);
  for (auto const id : ids) {
    std::uint32_t place = 0;
    if (free_.empty()) {
      place = static_cast<std::uint32_t>(uses_.size());
      uses_.emplace_back();
    } else {
      place = free_.back();
      free_.pop_back();
    }
    uses_[place] = {use, last_[id]};
    last_[id] = place;
  }
}

KeyUses::UseColumns KeyUses::take(View<Key const> keys, Clock step) {
  std::vector<std::uint32_t> ids(keys.size()), unused;
  index_.find(host_, keys, View<std::uint32_t>(ids));
  UseColumns columns;
  columns.first.reserve(keys.size() + 1);
  columns.first.push_back(0);
  for (auto const id : ids) {
    std::uint32_t* link = &last_[id];
    while (*link != kEnd) {
      auto& [use, next] = uses_[*link];
      columns.uses.push_back(use);
      if (use.step > step) {
        link = &next;
        continue;
      }
      free_.push_back(*link);
      *link = next;
    }
    if (last_[id] == kEnd) unused.push_back(id);
    columns.first.push_back(static_cast<std::uint32_t>(columns.uses.size()));
  }
  index_.wait_erase_ids(host_, View<std::uint32_t const>(unused));
  return columns;
}

}  // namespace gpups::cache
