// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/text/weighted_cells.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <vector>

#include "kernels/base/check.hpp"
#include "trainer/base/finite_number.hpp"
#include "trainer/input/line_reader.hpp"
#include "trainer/input/table_division.hpp"

namespace gpups::trainer {
namespace {

// What may be between values in place of '|'.
struct PairSeparator {
  char sign;
  std::string_view name;
};
constexpr PairSeparator kPairSeparators[] = {{',', "','"}, {';', "';'"}, {' ', "a blank"}};

bool is_weighted_value(std::string_view text) {
  text = trim_blanks(text);
  std::size_t const colon = text.rfind(':');
  return colon != text.npos && colon > 0 && finite_number(text.substr(colon + 1)).has_value();
}

// Whether a cell has several values with weights, and nothing else, between such signs.
bool has_pairs(std::string_view cell, char sign) {
  std::size_t pairs = 0;
  while (!cell.empty()) {
    std::size_t const end = cell.find(sign);
    std::string_view const part = cell.substr(0, end);
    cell.remove_prefix(end == cell.npos ? cell.size() : end + 1);
    if (part.empty()) continue;
    if (!is_weighted_value(part)) return false;
    ++pairs;
  }
  return pairs > 1;
}

// Returns the separator of the values of most cells that have several, or nothing. Sets `shown` to the first of them.
PairSeparator const* separator_of_pairs(std::span<std::string_view const> cells, std::string_view& shown) {
  constexpr std::size_t kCellsMin = 2;
  for (std::string_view const cell : cells) {
    if (cell.find('|') != cell.npos) return nullptr;
  }
  for (PairSeparator const& separator : kPairSeparators) {
    std::size_t found = 0;
    for (std::string_view const cell : cells) {
      if (has_pairs(cell, separator.sign) && found++ == 0) shown = cell;
    }
    if (found >= kCellsMin) return &separator;
  }
  return nullptr;
}

// Calls use(part) for the parts of a cell between '|'.
template <class Use>
void each_value(std::string_view cell, Use use) {
  while (true) {
    std::size_t const end = cell.find('|');
    use(cell.substr(0, end));
    if (end == cell.npos) return;
    cell.remove_prefix(end + 1);
  }
}

// Returns the first cell with a number after '=' if most values of the cells have one, and none has a weight; else
// nothing.
std::string_view find_equal_signs(std::span<std::string_view const> cells) {
  std::size_t values = 0, found = 0;
  bool weighted = false;
  std::string_view shown;
  for (std::string_view const cell : cells) {
    each_value(cell, [&](std::string_view value) {
      std::size_t const sign = value.rfind('=');
      bool const has_number = sign != value.npos && sign > 0 && finite_number(trim_blanks(value.substr(sign + 1)));
      if (has_number && found++ == 0) shown = cell;
      weighted = weighted || is_weighted_value(value);
      values += value.empty() ? 0 : 1;
    });
  }
  return !weighted && found > 1 && 2 * found > values ? shown : std::string_view();
}

// Returns the cells of a category, as they are in the lines. texts: their memory.
std::vector<std::string_view> cells_of(std::span<std::string_view const> lines, TableLayout const& table,
                                       std::size_t column, std::vector<std::string>& texts) {
  TableFields fields;
  for (std::string_view const line : lines) {
    if (!divide(line, table.separator, table.quotes, fields).empty()) continue;
    std::size_t const place = table.columns[column];
    if (place < fields.all.size()) texts.emplace_back(fields.all[place]);
  }
  return {texts.begin(), texts.end()};
}

constexpr std::size_t kCellBytesShown = 40;

}  // namespace

void require_bars(std::span<std::string_view const> lines, TableLayout const& table, Layout const& layout,
                  std::string_view path) {
  for (std::size_t c = 0; c < layout.categories.size(); ++c) {
    CategoryField const& category = layout.categories[c];
    if (category.kind != CategoryField::Kind::kWeighted) continue;
    std::vector<std::string> texts;
    auto const cells = cells_of(lines, table, 1 + layout.numbers.size() + c, texts);
    std::string_view shown;
    PairSeparator const* const separator = separator_of_pairs(cells, shown);
    GPUPS_REQUIRE(
        separator == nullptr,
        "{} has values separated by {} in {}, as in '{}' (values of a weighted category are separated by '|', "
        "so each cell would be one value): write '|' between values, or remove {} from data.weighted if a "
        "cell is one value",
        path, separator->name, category.name, shown.substr(0, kCellBytesShown), category.name);
    std::string_view const equal = find_equal_signs(cells);
    GPUPS_REQUIRE(equal.empty(),
                  "{} has numbers after '=' in {}, as in '{}' (a weight follows ':', so they would be part of the "
                  "values): write ':' before weights, or remove {} from data.weighted if values have no weights",
                  path, category.name, equal.substr(0, kCellBytesShown), category.name);
  }
}

std::string blanks_at_bars(std::span<std::string_view const> lines, TableLayout const& table, Layout const& layout,
                           std::string_view path) {
  for (std::size_t c = 0; c < layout.categories.size(); ++c) {
    CategoryField const& category = layout.categories[c];
    if (category.kind == CategoryField::Kind::kOne) continue;
    std::vector<std::string> texts;
    for (std::string_view const cell : cells_of(lines, table, 1 + layout.numbers.size() + c, texts)) {
      std::string_view shown;
      each_value(cell, [&](std::string_view value) {
        if (shown.empty() && trim_blanks(value) != value) shown = value;
      });
      if (shown.empty()) continue;
      return fmt::format(
          "{} has blanks around '|' in {}, as in '{}': they are part of values, and '{}' is another value than '{}'; "
          "remove them if they should be the same",
          path, category.name, cell.substr(0, kCellBytesShown), shown, trim_blanks(shown));
    }
  }
  return {};
}

}  // namespace gpups::trainer
