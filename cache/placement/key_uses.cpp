// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/key_uses.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <span>
#include <tuple>
#include <utility>

namespace gpups::cache {
namespace {

static_assert(kPolicyWindow == 16);  // the bits of RowUser::steps

// Keys from a prefetch of a record to its use.
constexpr std::size_t kAhead = 8;

int bit_of(Clock step) { return static_cast<int>(number(step) % kPolicyWindow); }

bool is_hotter(RankedRow const& a, RankedRow const& b) {
  return std::tuple(b.uses, a.table, a.key) < std::tuple(a.uses, b.table, b.key);
}

}  // namespace

std::uint32_t KeyUses::add_overflow(std::uint32_t next) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(overflow_.size()));
    overflow_.emplace_back();
  }
  auto const place = free_.back();
  free_.pop_back();
  overflow_[place] = {.packed = {}, .count = 0, .next = next};
  return place;
}

void KeyUses::add_use(Users& first, Clock step, Rank reader) {
  std::uint32_t const bit = 0x10000U << bit_of(step);
  Users* with_room = nullptr;
  for (auto* users = &first;; users = &overflow_[users->next]) {
    for (std::uint32_t i = 0; i < users->count; ++i) {
      if ((users->packed[i] & 0xFFFF) == number(reader)) return void(users->packed[i] |= bit);
    }
    if (users->count < std::size(users->packed)) with_room = users;
    if (users->next == kEnd) break;
  }
  if (with_room == nullptr) with_room = &overflow_[first.next = add_overflow(first.next)];
  with_room->packed[with_room->count++] = bit | number(reader);
}

void KeyUses::add(View<Key const> keys, Clock step, Rank reader) {
  auto& of_step = of_step_[step];
  std::size_t const begin = of_step.size();
  of_step.resize(begin + keys.size());
  View<std::uint32_t> const ids(of_step.data() + begin, keys.size(), Device::host());
  index_.wait_find_or_insert(host_, keys, ids);
  records_.resize(index_.ids_end());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i + kAhead < ids.size()) __builtin_prefetch(&records_[ids[i + kAhead]], 1);
    records_[ids[i]].key = keys[i];
    add_use(records_[ids[i]].users, step, reader);
  }
}

// Appends the users of a key to `users`, and keeps those that use it in later steps.
void KeyUses::take_users(Users& first, Clock step, std::vector<RowUser>& users) {
  auto const take = [&](Users& some) {
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < some.count; ++i) {
      auto const user = some.packed[i];
      users.push_back({Rank{user & 0xFFFF}, std::rotr(static_cast<std::uint16_t>(user >> 16), bit_of(step))});
      auto const later = user & ~(0x10000U << bit_of(step));
      if (later > 0xFFFF) some.packed[kept++] = later;
    }
    some.count = kept;
  };
  take(first);
  for (auto* link = &first.next; *link != kEnd;) {
    auto const place = *link;
    take(overflow_[place]);
    if (overflow_[place].count > 0) {
      link = &overflow_[place].next;
    } else {
      *link = overflow_[place].next;
      free_.push_back(place);
    }
  }
}

KeyUses::UsedKeys KeyUses::take(Clock step) {
  UsedKeys used;
  used.first.push_back(0);
  auto const found = of_step_.extract(step);
  if (found.empty()) return used;
  auto const& ids = found.mapped();
  used.keys.reserve(ids.size());
  used.first.reserve(ids.size() + 1);
  used.users.reserve(2 * ids.size());
  std::vector<std::uint32_t> unused;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i + kAhead < ids.size()) __builtin_prefetch(&records_[ids[i + kAhead]], 1);
    auto& record = records_[ids[i]];
    if (record.taken == step) continue;  // several batches or parts use it
    record.taken = step;
    take_users(record.users, step, used.users);
    if (record.users.count == 0 && record.users.next == kEnd) unused.push_back(ids[i]);
    used.keys.push_back(record.key);
    used.first.push_back(static_cast<std::uint32_t>(used.users.size()));
  }
  index_.wait_erase_ids(host_, View<std::uint32_t const>(unused));
  return used;
}

void HotRows::add(TableId table, KeyUses::UsedKeys const& used) {
  for (std::size_t i = 0; i < used.keys.size(); ++i) {
    auto const users = std::span(used.users).subspan(used.first[i], used.first[i + 1] - used.first[i]);
    std::size_t uses = 0;
    for (auto const& user : users) uses += static_cast<std::size_t>(std::popcount(user.steps));
    bool const full = rows_.size() == capacity_;
    if (full && uses < rows_.front().uses) continue;
    RankedRow row{.table = table, .key = used.keys[i], .uses = uses, .users = {users.begin(), users.end()}};
    if (full) {
      if (!is_hotter(row, rows_.front())) continue;
      std::pop_heap(rows_.begin(), rows_.end(), is_hotter);
      rows_.pop_back();
    }
    rows_.push_back(std::move(row));
    std::push_heap(rows_.begin(), rows_.end(), is_hotter);
  }
}

std::vector<RankedRow> HotRows::sorted() const {
  auto rows = rows_;
  std::sort(rows.begin(), rows.end(), is_hotter);
  return rows;
}

}  // namespace gpups::cache
