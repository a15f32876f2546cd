// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/column_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>

namespace gpups::trainer {
namespace {

// Returns the place of a name among the usual ones of a column, or npos.
std::size_t rank_of(std::string_view heading, TableColumn const& column) {
  std::string const name = plain_name(heading);
  return name.empty() ? std::string::npos : fmt::format(" {} ", column.headings).find(" " + name + " ");
}

}  // namespace

std::string plain_name(std::string_view name) {
  if (name.starts_with(':') || name.starts_with('~')) name.remove_prefix(1);
  name = name.substr(0, name.find_first_of(":("));
  std::string text;
  for (char const c : name) {
    if (c != '_' && c != '-' && c != ' ') text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

bool is_called(std::string_view heading, TableColumn const& column) {
  return rank_of(heading, column) != std::string::npos;
}

bool ends_with_name(std::string_view heading, TableColumn const& column) {
  heading = heading.substr(0, heading.find_first_of(":("));
  for (std::size_t at = 1; at < heading.size(); ++at) {
    auto const before = static_cast<unsigned char>(heading[at - 1]), first = static_cast<unsigned char>(heading[at]);
    bool const begins_word =
        before == ' ' || before == '_' || before == '-' || (std::islower(before) != 0 && std::isupper(first) != 0);
    if (begins_word && is_called(heading.substr(at), column)) return true;
  }
  return false;
}

bool may_be_called(std::string_view heading, TableColumn const& column) {
  std::size_t const end = heading.find_last_of("_.");
  bool const has_end = end != heading.npos && end > 0 && heading.size() == end + 2;
  return is_called(heading, column) || ends_with_name(heading, column) ||
         (has_end && is_called(heading.substr(0, end), column));
}

bool is_index_name(std::string_view heading) {
  constexpr std::string_view kUnnamed = "Unnamed: ";
  return heading.empty() || heading.starts_with(kUnnamed) || heading == "...1" || heading == "rownames" ||
         heading == "row.names" || heading == "row_names";
}

bool counts_rows(std::span<TableRow const> rows) {
  constexpr std::size_t kRowsMin = 3;
  bool from_0 = rows.size() >= kRowsMin, from_1 = from_0;
  for (std::size_t i = 0; i < rows.size() && (from_0 || from_1); ++i) {
    from_0 = from_0 && rows[i].front() == std::to_string(i);
    from_1 = from_1 && rows[i].front() == std::to_string(i + 1);
  }
  return from_0 || from_1;
}

std::size_t index_columns(TableRow const& heading, std::span<TableRow const> rows, TableKind const& kind) {
  if (heading.empty()) return 0;
  if (is_index_name(heading.front())) return 1;
  constexpr std::string_view kMayBe[] = {"index", "x", "x1", "level0", "rn", "rowid", "rownumber"};
  std::string const name = plain_name(heading.front());
  bool const may_be = std::find(std::begin(kMayBe), std::end(kMayBe), name) != std::end(kMayBe) &&
                      !is_called(name, kind.columns.front());
  return may_be && heading.size() > least_of(kind) && counts_rows(rows) ? 1 : 0;
}

std::vector<std::size_t> places_by_name(TableRow const& heading, TableKind const& kind) {
  std::vector<std::size_t> places;
  for (TableColumn const& column : kind.columns) {
    std::size_t place = kNoColumn, best = std::string::npos;
    bool twice = false;
    for (std::size_t i = 0; i < heading.size(); ++i) {
      std::size_t const rank = rank_of(heading[i], column);
      if (rank == std::string::npos || rank > best) continue;
      twice = rank == best;
      best = rank;
      place = i;
    }
    places.push_back(twice ? kNoColumn : place);
  }
  return places;
}

bool has_required_names(std::vector<std::size_t> const& places, TableKind const& kind) {
  auto const end = places.begin() + static_cast<std::ptrdiff_t>(least_of(kind));
  for (auto place = places.begin(); place != end; ++place) {
    if (*place == kNoColumn || std::find(places.begin(), place, *place) != place) return false;
  }
  return true;
}

std::vector<std::size_t> used_columns(TableSettings const& settings, TableKind const& kind, TableRow const& first) {
  std::vector<std::size_t> places;
  for (std::string const& column : settings.columns) {
    std::size_t number = 0;
    std::from_chars(column.data(), column.data() + column.size(), number);
    auto const name = std::find(first.begin(), first.end(), column);
    if (number == 0 && name == first.end()) return {};
    places.push_back(number > 0 ? number - 1 : static_cast<std::size_t>(name - first.begin()));
  }
  if (!places.empty()) return places;
  places = places_by_name(first, kind);
  if (!has_required_names(places, kind)) return {};
  std::erase(places, kNoColumn);
  return places;
}

}  // namespace gpups::trainer
