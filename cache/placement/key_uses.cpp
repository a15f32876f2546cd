// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/key_uses.hpp"

#include <bit>

namespace gpups::cache {
namespace {

static_assert(kPolicyWindow == 16);  // the bits of RowUser::steps

int bit_of(Clock step) { return static_cast<int>(number(step) % kPolicyWindow); }

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

void KeyUses::add_use(KeyRecord& key, Clock step, Rank reader) {
  std::uint32_t const bit = 0x10000U << bit_of(step);
  auto with_room = kEnd;
  for (auto place = key.first; place != kEnd; place = chunks_[place].next) {
    auto& chunk = chunks_[place];
    for (std::uint32_t i = 0; i < chunk.count; ++i) {
      if ((chunk.users[i] & 0xFFFF) == number(reader)) return void(chunk.users[i] |= bit);
    }
    if (chunk.count < kChunkUsers) with_room = place;
  }
  if (with_room == kEnd) with_room = key.first = add_chunk(key.first);
  auto& chunk = chunks_[with_room];
  chunk.users[chunk.count++] = bit | number(reader);
}

void KeyUses::add(View<Key const> keys, Clock step, Rank reader) {
  auto& of_step = of_step_[step];
  std::size_t const begin = of_step.size();
  of_step.resize(begin + keys.size());
  View<std::uint32_t> const ids(of_step.data() + begin, keys.size(), Device::host());
  index_.wait_find_or_insert(host_, keys, ids);
  records_.resize(index_.ids_end());
  for (auto const id : ids) add_use(records_[id], step, reader);
}

// Appends the users of a key to `users`, and keeps those that use it in later steps.
void KeyUses::take_users(KeyRecord& key, Clock step, std::vector<RowUser>& users) {
  for (auto* link = &key.first; *link != kEnd;) {
    auto& chunk = chunks_[*link];
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < chunk.count; ++i) {
      auto const user = chunk.users[i];
      users.push_back({Rank{user & 0xFFFF}, std::rotr(static_cast<std::uint16_t>(user >> 16), bit_of(step))});
      auto const later = user & ~(0x10000U << bit_of(step));
      if (later > 0xFFFF) chunk.users[kept++] = later;
    }
    chunk.count = kept;
    if (kept > 0) {
      link = &chunk.next;
    } else {
      free_.push_back(*link);
      *link = chunk.next;
    }
  }
}

KeyUses::UsedKeys KeyUses::take(Clock step) {
  UsedKeys used;
  used.first.push_back(0);
  auto const ids = of_step_.extract(step);
  if (ids.empty()) return used;
  std::vector<std::uint32_t> unused;
  for (auto const id : ids.mapped()) {
    auto& key = records_[id];
    if (key.taken == step) continue;  // several batches or parts use it
    key.taken = step;
    take_users(key, step, used.users);
    if (key.first == kEnd) unused.push_back(id);
    used.keys.push_back(Key{*index_.keys().row(id)});
    used.first.push_back(static_cast<std::uint32_t>(used.users.size()));
  }
  index_.wait_erase_ids(host_, View<std::uint32_t const>(unused));
  return used;
}

}  // namespace gpups::cache
