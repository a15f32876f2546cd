// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/hot_rows.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <tuple>
#include <utility>

namespace gpups::cache {
namespace {

bool is_hotter(RankedRow const& a, RankedRow const& b) {
  return std::tuple(b.uses, a.table, a.key) < std::tuple(a.uses, b.table, b.key);
}

}  // namespace

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
