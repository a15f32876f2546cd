// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/key_uses.hpp"

namespace gpups::cache {

void KeyUses::add(View<Key const> keys, RowUse use) {
  auto& of_step = of_step_[use.step];
  std::size_t const first = of_step.size();
  of_step.resize(first + keys.size());
  View<std::uint32_t> const ids(of_step.data() + first, keys.size(), Device::host());
  index_.wait_find_or_insert(host_, keys, ids);
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

KeyUses::UsedKeys KeyUses::take(Clock step) {
  UsedKeys used;
  used.first.push_back(0);
  std::vector<std::uint32_t> unused;
  auto const ids = of_step_.extract(step);
  if (ids.empty()) return used;
  for (auto const id : ids.mapped()) {
    bool is_new = false;  // a key that repeats has no more uses in this step
    std::size_t const first = used.uses.size();
    for (std::uint32_t* link = &last_[id]; *link != kEnd;) {
      auto& [use, next] = uses_[*link];
      used.uses.push_back(use);
      if (use.step > step) {
        link = &next;
        continue;
      }
      is_new = true;
      free_.push_back(*link);
      *link = next;
    }
    if (!is_new) {
      used.uses.resize(first);
      continue;
    }
    used.keys.push_back(Key{*index_.keys().row(id)});
    used.first.push_back(static_cast<std::uint32_t>(used.uses.size()));
    if (last_[id] == kEnd) unused.push_back(id);
  }
  index_.wait_erase_ids(host_, View<std::uint32_t const>(unused));
  return used;
}

}  // namespace gpups::cache
