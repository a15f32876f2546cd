// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/interactions/interaction_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernels/base/check.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/tasks/common/times.hpp"

namespace gpups::trainer {
namespace {

constexpr std::size_t kFewRows = 10;  // in which names may be alone

// Whether no name is in two columns after the first, though one of them has names again, or the rows are few.
bool has_disjoint_columns(std::span<TableRow const> rows) {
  std::map<std::string_view, std::size_t> column_of;
  std::map<std::size_t, std::set<std::string_view>> names;
  for (auto const& row : rows) {
    for (std::size_t column = 1; column < row.size(); ++column) {
      if (row[column].empty()) continue;
      if (column_of.try_emplace(row[column], column).first->second != column) return false;
      names[column].insert(row[column]);
    }
  }
  return rows.size() > 2 && (rows.size() < kFewRows || std::any_of(names.begin(), names.end(), [&](auto const& column) {
                               return 2 * column.second.size() <= rows.size();
                             }));
}

// Whether a column has the number of the fields after it, in several lines of several sizes.
bool counts_items(std::span<TableRow const> rows, std::size_t column) {
  std::set<std::size_t> sizes;
  for (auto const& row : rows) {
    if (column >= row.size() || row[column] != std::to_string(row.size() - column - 1)) return false;
    sizes.insert(row.size());
  }
  return sizes.size() > 1;
}

// Whether each item has a number after it: "u i5 1 i19 5", or "u 5 1.0 19 5.0".
bool has_values(std::span<TableRow const> rows) {
  bool names = true, fractions = true;
  for (auto const& row : rows) {
    if (row.size() < 3 || row.size() % 2 == 0) return false;
    for (std::size_t i = 1; i < row.size(); i += 2) {
      if (!is_number(row[i + 1])) return false;
      names = names && !is_number(row[i]);
      fractions = fractions && row[i + 1].find('.') != std::string::npos && row[i].find('.') == std::string::npos;
    }
  }
  return rows.size() > 1 && (names || fractions);
}

// Whether the rows may be a user, an item and other columns.
bool is_table(std::span<TableRow const> rows) {
  std::size_t least = ~std::size_t{0}, most = 0;
  bool numbers = true, repeated = false;
  std::set<std::string_view> users;
  for (auto const& row : rows) {
    least = std::min(least, row.size());
    most = std::max(most, row.size());
    numbers = numbers && std::all_of(row.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(row.size(), 2)),
                                     row.end(), [](std::string const& field) { return is_number(field); });
    repeated = repeated || !users.insert(row.front()).second;
  }
  if (numbers && most >= 3 && most <= 4) return true;
  if (least < 3 || (least != most && !(least == 3 && most == 4))) return false;
  if (repeated || (least == most && has_disjoint_columns(rows))) return true;
  // Items are alike: not numbers in one column, and names in another.
  for (std::size_t column = 2; rows.size() > 1 && column < least; ++column) {
    if (std::all_of(rows.begin(), rows.end(),
                    [column](auto const& row) { return is_number(row[column]) && !is_number(row[1]); })) {
      return true;
    }
  }
  return false;
}

// Whether the rows may be those of a matrix: equally long, of numbers, of which there are few and which repeat in a
// row, as items of a list do not. The first row may be its heading.
bool is_matrix(std::span<TableRow const> rows) {
  constexpr std::size_t kFields = 4, kRows = 3;  // at least
  constexpr std::size_t kValues = 11;            // ratings from 0 to 5 by halves
  std::size_t const fields = rows.front().size();
  if (rows.size() < kRows || fields < kFields || rows[0].size() != fields) return false;
  std::size_t repeating = 0;
  std::set<std::string_view> all;
  for (auto const& row : rows.subspan(1)) {
    if (row.size() != fields) return false;
    std::set<std::string_view> const values(row.begin() + 1, row.end());
    if (!std::all_of(values.begin(), values.end(), [](std::string_view value) { return is_number(value); }))
      return false;
    if (values.size() < fields - 1) ++repeating;
    all.insert(values.begin(), values.end());
  }
  return 2 * repeating >= rows.size() - 1 && all.size() <= std::max(fields - 2, kValues);
}

}  // namespace

void require_lists(std::span<TableRow const> rows, std::string_view path) {
  if (rows.empty()) return;
  GPUPS_REQUIRE(
      !counts_items(rows, 0) && !counts_items(rows, 1),
      "{} has lines with the number of their items, as in '{}' (it would become a user or an item): remove it", path,
      fmt::join(rows.front(), " "));
  GPUPS_REQUIRE(
      !std::all_of(rows.begin(), rows.end(), [](auto const& row) { return row.back() == "-2"; }),
      "{} has lines that end with -2, as sequences of SPMF do (-1 and -2 would become items): write users and items "
      "without them",
      path);
  bool const same = std::all_of(rows.begin(), rows.end(), [&](auto const& row) { return row.size() == 3; });
  GPUPS_REQUIRE(same || !has_values(rows),
                "{} has a number after each item, as in '{}' (it would become an item): write a line for each user and "
                "item, or the items alone",
                path, fmt::join(rows.front(), " "));
  GPUPS_REQUIRE(
      !is_matrix(rows),
      "{} has lines of {} fields in which values repeat, as in '{}' (the values of a matrix of users and items "
      "would become items): write a line for each user and item, or set data.columns to [\"1\", \"2-\"] if "
      "they are items",
      path, rows.front().size(), fmt::join(rows[1], " "));
  // The first row may be a heading that no setting names.
  bool const is_below_heading = rows.size() > kFewRows && is_table(rows.subspan(1));
  GPUPS_REQUIRE(!is_table(rows) && !is_below_heading,
                "{} has lines of {} fields (if a line is a user, an item and other columns, these would become items): "
                "set data.columns to [\"1\", \"2\"] for a user and an item, or to [\"1\", \"2-\"] for a user and items",
                path, std::max_element(rows.begin(), rows.end(), [](auto const& a, auto const& b) {
                        return a.size() < b.size();
                      })->size());
}

void say_baskets(Dictionary const& users, Dictionary const& items, std::string_view path,
                 std::vector<std::string>& notices) {
  constexpr std::size_t kUsersMin = 5, kUsersMost = 10'000;
  std::size_t const all = std::min(users.size(), kUsersMost);
  std::size_t also_items = 0, numbers = 0;
  std::string_view shown;
  for (std::uint32_t user = 0; user < all; ++user) {
    std::string_view const name = users.name(user);
    numbers += is_number(name) ? 1 : 0;
    if (!items.find(name)) continue;
    ++also_items;
    if (shown.empty()) shown = name;
  }
  if (all < kUsersMin || 10 * also_items < 9 * all || 2 * numbers > all) return;
  notices.push_back(
      fmt::format("{} of {} of {} are also items, such as '{}': if a line is a basket, its first item is read as a "
                  "user; put a user "
                  "before it, for example the number of the line",
                  also_items, with_count(all, "user"), path, shown));
}

void say_dates(std::span<TableRow const> rows, TableLayout const& layout, std::string_view path,
               std::vector<std::string>& notices) {
  std::size_t const item = layout.columns.size() > 1 ? layout.columns[1] : 0;
  bool const dates = std::all_of(rows.begin(), rows.end(),
                                 [&](auto const& row) { return item < row.size() && begins_with_date(row[item]); });
  if (!dates || rows.empty()) return;
  notices.push_back(
      fmt::format("the items of {} begin with dates, such as '{}': if they are times, name another column "
                  "with data.columns",
                  path, rows.front()[item]));
}

}  // namespace gpups::trainer
