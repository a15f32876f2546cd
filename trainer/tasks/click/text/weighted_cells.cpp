// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/text/weighted_cells.hpp"

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

}  // namespace

void require_bars(std::span<std::string_view const> lines, TableLayout const& table, Layout const& layout,
                  std::string_view path) {
  TableFields fields;
  for (std::size_t c = 0; c < layout.categories.size(); ++c) {
    if (layout.categories[c].kind != CategoryField::Kind::kWeighted) continue;
    std::size_t const place = table.columns[1 + layout.numbers.size() + c];
    std::vector<std::string> texts;
    for (std::string_view const line : lines) {
      if (!divide(line, table.separator, table.quotes, fields).empty() || place >= fields.all.size()) continue;
      texts.emplace_back(fields.all[place]);
    }
    std::vector<std::string_view> const cells(texts.begin(), texts.end());
    std::string_view shown;
    PairSeparator const* const separator = separator_of_pairs(cells, shown);
    constexpr std::size_t kShownBytes = 40;
    GPUPS_REQUIRE(
        separator == nullptr,
        "{} has values separated by {} in {}, as in '{}' (values of a weighted category are separated by '|', "
        "so each cell would be one value): write '|' between values, or remove {} from data.weighted if a "
        "cell is one value",
        path, separator->name, layout.categories[c].name, shown.substr(0, kShownBytes), layout.categories[c].name);
  }
}

}  // namespace gpups::trainer
