// SPDX-License-Identifier: Apache-2.0
// The rows that a home reports as the most used.
#include "cache/placement/key_uses.hpp"

#include <gtest/gtest.h>

namespace gpups::cache::hot_rows_test {
namespace {

// Returns keys 0, 1, ... with these numbers of uses, by two ranks where there are several.
KeyUses::UsedKeys used(std::vector<unsigned> const& counts) {
  KeyUses::UsedKeys used{.keys = {}, .first = {0}, .users = {}};
  for (std::size_t key = 0; key < counts.size(); ++key) {
    used.keys.push_back(Key{key});
    Rank const first{static_cast<std::uint32_t>(key)}, second{static_cast<std::uint32_t>(key + 10)};
    used.users.push_back({first, 1});
    if (counts[key] > 1) used.users.push_back({second, static_cast<std::uint16_t>((1U << (counts[key] - 1)) - 1)});
    used.first.push_back(static_cast<std::uint32_t>(used.users.size()));
  }
  return used;
}

struct Ranked {
  std::uint32_t table;
  std::uint64_t key;
  std::size_t uses;
  bool operator==(Ranked const&) const = default;
};

std::vector<Ranked> sorted(HotRows const& rows) {
  std::vector<Ranked> ranked;
  for (auto const& row : rows.sorted()) {
    ranked.push_back({number(row.table), number(row.key), row.uses});
    for (auto const& user : row.users) EXPECT_EQ(number(user.rank) % 10, number(row.key)) << "a user of another row";
  }
  return ranked;
}

TEST(HotRows, KeepTheMostUsedRowsOfAllTables) {
  HotRows rows(3);
  rows.add(TableId{1}, used({4, 1, 7}));
  rows.add(TableId{0}, used({2, 5}));
  EXPECT_EQ(sorted(rows), (std::vector<Ranked>{{1, 2, 7}, {0, 1, 5}, {1, 0, 4}}));
  rows.clear();
  EXPECT_TRUE(sorted(rows).empty());
}

TEST(HotRows, PreferLowTablesAndKeysAmongEquals) {
  HotRows rows(2);
  rows.add(TableId{1}, used({3, 3}));
  rows.add(TableId{0}, used({1, 3, 3}));
  EXPECT_EQ(sorted(rows), (std::vector<Ranked>{{0, 1, 3}, {0, 2, 3}}));
}

}  // namespace
}  // namespace gpups::cache::hot_rows_test
