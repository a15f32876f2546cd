// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/key_uses.hpp"

#include <algorithm>
#include <utility>

namespace gpups::cache {
namespace {

constexpr std::uint32_t low_half(Clock step) { return static_cast<std::uint32_t>(number(step)) & 0xFFFF; }

std::uint32_t pack(RowUse use) { return low_half(use.step) << 16 | number(use.reader); }

// base: at most 2^15 steps before the use, or after it.
RowUse unpack(std::uint32_t word, Clock base) {
  auto const steps = static_cast<std::int16_t>((word >> 16) - low_half(base));
  return {base + steps, Rank{word & 0xFFFF}};
}

}  // namespace

std::uint32_t KeyUses::add_chunk(std::uint32_t next) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(chunks_.size()));
    chunks_.emplace_back();
  }
  auto const place = free_.back();
  free_.pop_back();
  chunks_[place].count = 0;
  chunks_[place].next = next;
  return place;
}

void KeyUses::add(View<Key const> keys, RowUse use) {
  auto& of_step = of_step_[use.step];
  std::size_t const begin = of_step.size();
  of_step.resize(begin + keys.size());
  View<std::uint32_t> const ids(of_step.data() + begin, keys.size(), Device::host());
  index_.wait_find_or_insert(host_, keys, ids);
  first_.resize(index_.ids_end(), kEnd);
  auto const word = pack(use);
  for (auto const id : ids) {
    auto& first = first_[id];
    if (first == kEnd || chunks_[first].count == kChunkUses) first = add_chunk(first);
    auto& chunk = chunks_[first];
    chunk.uses[chunk.count++] = word;
  }
}

// Appends the uses of a key from `step` on to `uses`, and keeps those in later steps.
void KeyUses::keep_later(std::uint32_t id, Clock step, std::vector<RowUse>& uses) {
  std::size_t const begin = uses.size();
  for (auto place = std::exchange(first_[id], kEnd); place != kEnd;) {
    auto const& chunk = chunks_[place];
    for (std::uint32_t i = 0; i < chunk.count; ++i) uses.push_back(unpack(chunk.uses[i], step));
    free_.push_back(place);
    place = chunk.next;
  }
  for (std::size_t i = begin; i < uses.size(); ++i) {
    if (uses[i].step <= step) continue;
    auto& first = first_[id];
    if (first == kEnd || chunks_[first].count == kChunkUses) first = add_chunk(first);
    auto& chunk = chunks_[first];
    chunk.uses[chunk.count++] = pack(uses[i]);
  }
}

KeyUses::UsedKeys KeyUses::take(Clock step) {
  UsedKeys used;
  used.first.push_back(0);
  auto const ids = of_step_.extract(step);
  if (ids.empty()) return used;
  std::vector<std::uint32_t> unused;
  for (auto const id : ids.mapped()) {
    if (first_[id] == kEnd) continue;  // a key that repeats, without later uses
    std::size_t const begin = used.uses.size();
    keep_later(id, step, used.uses);
    bool const repeats = std::none_of(used.uses.begin() + static_cast<std::ptrdiff_t>(begin), used.uses.end(),
                                      [=](auto const& use) { return use.step == step; });
    if (repeats) {
      used.uses.resize(begin);
      continue;
    }
    used.keys.push_back(Key{*index_.keys().row(id)});
    used.first.push_back(static_cast<std::uint32_t>(used.uses.size()));
    if (first_[id] == kEnd) unused.push_back(id);
  }
  index_.wait_erase_ids(host_, View<std::uint32_t const>(unused));
  return used;
}

}  // namespace gpups::cache
